"""External endpoints and their secrets, parsed: mail addresses, servers, URLs, networks, secrets, event ids.

Every parser raises ValueError with what the text must be.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import re
import unicodedata
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

# RFC 5321, 4.5.3.1: what every mail server takes.
LOCAL_PART_OCTETS = 64
DOMAIN_CHARACTERS = 253

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

# What an unquoted local part is made of; beyond ASCII (SMTPUTF8), letters and digits of any script.
LOCAL_PART = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*")
# Read here and not by urllib, which takes some characters away without a word and overlooks others.
URL = re.compile(
    r"(?P<scheme>(?i:https?))://"
    r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?"
    r"(?P<target>[/?][!$-\[\]-~]*)?"
)
URL_FORM = (
    "a URL such as https://example.com/hooks, in ASCII (names as xn--, paths with %XX), and without user, password,"
    " fragment, spaces or backslashes"
)
# What a webhook's receiver tells repetitions by; a dot would let it take in the timestamp that is signed behind it.
EVENT_ID = re.compile(r"[A-Za-z0-9_:@/+=-]{1,255}")
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Mailbox:
    """Who sends a mail or gets it; the domain is in its ASCII form."""

    address: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>" if self.name else self.address

    @classmethod
    def parse(cls, text: str) -> Mailbox:
        """`address`, or `Name <address>`."""
        named = re.fullmatch(r'\s*"?([^"<>]*?)"?\s*<([^<>]*)>\s*', text)
        name, address = named.groups() if named else ("", text.strip())
        if not name.isprintable():
            raise ValueError("a mail address such as name@example.com, and a name without control characters")
        return cls(mail_address(address), name)


def mail_address(text: str) -> str:
    """One mail address."""
    local, _, domain = text.rpartition("@")
    try:
        return f"{_local_part(local)}@{_domain(domain)}"
    except ValueError:
        raise ValueError("a mail address such as name@example.com") from None


def _local_part(text: str) -> str:
    if not LOCAL_PART.fullmatch(text) or len(text.encode()) > LOCAL_PART_OCTETS:
        raise ValueError
    return text


def _domain(text: str) -> str:
    """A domain in ASCII; refuse one that normalization would change into another."""
    if len(text) > DOMAIN_CHARACTERS:
        raise ValueError
    domain = wanted = unicodedata.normalize("NFC", text.lower())
    if not wanted.isascii():
        domain = wanted.encode("idna").decode()
        if domain.encode().decode("idna") != wanted:
            raise ValueError
    if len(domain) > DOMAIN_CHARACTERS or not all(LABEL.fullmatch(label) for label in domain.split(".")):
        raise ValueError
    return domain


@dataclass(frozen=True)
class SmtpServer:
    """A mail server, with its credentials."""

    host: str
    port: int
    tls: bool
    starttls: bool
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str) -> SmtpServer:
        """`smtp://user:password@host:587` (STARTTLS, unless `?starttls=never`) or `smtps://user:password@host:465`."""
        form = "a URL such as smtp://user:password@host:587 or smtps://user:password@host:465"
        try:
            parts = urlsplit(text.strip())
            host, port = _host(parts.hostname or ""), parts.port
            asked = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        except ValueError:
            raise ValueError(f"{form} (in user and password, write all but letters and digits as %XX)") from None
        tls = parts.scheme == "smtps"
        if parts.scheme not in {"smtp", "smtps"} or parts.path.strip("/") or parts.fragment:
            raise ValueError(form)
        if set(asked) - {"starttls"} or asked.get("starttls", "required") not in {"required", "never"}:
            raise ValueError(f"{form}, and after a ? there may be starttls=required or starttls=never")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not (user + password).isascii() or not (user + password + "x").isprintable():
            raise ValueError(f"{form}, with user and password in ASCII")
        starttls = not tls and asked.get("starttls") != "never"
        if user and not (tls or starttls or host in LOOPBACK_NAMES):
            raise ValueError(f"{form}; with starttls=never the password would travel in the clear")
        return cls(host, port or (465 if tls else 587), tls, starttls, user, password)


@dataclass(frozen=True)
class HttpUrl:
    """A parsed HTTP URL."""

    secure: bool
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.target}"

    @classmethod
    def parse(cls, text: str) -> HttpUrl:
        """An absolute http or https URL in plain ASCII, without user, password or fragment."""
        read = URL.fullmatch(text)
        if read is None or not 0 < int(read["port"] or 443) < 65536:
            raise ValueError(URL_FORM)
        try:
            host = _host(read["host"].strip("[]"))
        except ValueError:
            raise ValueError(URL_FORM) from None
        secure = read["scheme"].lower() == "https"
        target = read["target"] or "/"
        return cls(
            secure, host, int(read["port"] or (443 if secure else 80)), target if target[0] == "/" else f"/{target}"
        )


def provider_url(text: str) -> HttpUrl:
    """The base URL of a provider: https, or http on loopback."""
    url = HttpUrl.parse(text.strip().rstrip("/"))
    if not url.secure and url.host not in LOOPBACK_NAMES:
        raise ValueError("an https URL (http only on loopback)")
    if "?" in url.target:
        raise ValueError("a URL without a query")
    return url


def _host(text: str) -> str:
    """A host name without the dot of the root, or an address (IPv6 without its brackets)."""
    return str(ipaddress.IPv6Address(text)) if ":" in text else _domain(text.removesuffix("."))


def event_id(text: str) -> str:
    """The id of a webhook's event."""
    if not EVENT_ID.fullmatch(text):
        raise ValueError("1 to 255 of the characters A-Z a-z 0-9 _ : @ / + = -")
    return text


def token(text: str) -> str:
    """A secret that travels in a header."""
    word = text.strip()
    if not re.fullmatch(r"[!-~]+", word):
        raise ValueError("one word of printable ASCII characters")
    return word


def signing_secrets(text: str) -> tuple[bytes, ...]:
    """The keys of Standard Webhooks, in the form in which its receivers are given them."""
    return tuple(_signing_secret(word) for word in text.split())


def endpoint_secret(secret: bytes, url: str | HttpUrl) -> bytes:
    """What the receiver at this URL checks signatures with: derived, so that no receiver can sign for another one."""
    target = HttpUrl.parse(url) if isinstance(url, str) else url
    return hmac.digest(secret, f"webhook endpoint {target}".encode(), "sha256")


def _signing_secret(word: str) -> bytes:
    try:
        key = base64.b64decode(word.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not word.startswith("whsec_") or not 24 <= len(key) <= 64:
        raise ValueError("whsec_ and the base64 of 24 to 64 random bytes, or several such words with a space between")
    return key


def plain_address(text: str) -> Address:
    """An address without its zone; an IPv4 address that is written as an IPv6 one is that IPv4 address."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


@dataclass(frozen=True)
class Networks:
    """Addresses and networks."""

    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

    def __contains__(self, address: Address) -> bool:
        return any(address in network for network in self.networks)

    def __str__(self) -> str:
        return ", ".join(map(str, self.networks))

    @classmethod
    def parse(cls, text: str) -> Networks:
        """Parse addresses and networks, separated by commas or spaces."""
        try:
            return cls(tuple(map(ipaddress.ip_network, text.replace(",", " ").split())))
        except ValueError:
            raise ValueError(
                "addresses or networks such as 192.0.2.7 or 10.0.0.0/8, with commas between them; a network has no bit"
                " set behind its prefix"
            ) from None
