"""Parsers for external endpoints and their secrets: email addresses, servers, URLs, networks, secrets, event ids.

For invalid text, every parser raises a ValueError whose message says what the text must be.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import re
import unicodedata
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

# RFC 5321, 4.5.3.1: every mail server accepts these sizes.
LOCAL_PART_OCTETS = 64
DOMAIN_CHARACTERS = 253

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

# An unquoted local part; with SMTPUTF8 it may contain letters and digits of any script.
LOCAL_PART = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*")
# Not urllib: it silently removes some characters and overlooks others.
URL = re.compile(
    r"(?P<scheme>(?i:https?))://"
    r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?"
    r"(?P<target>[/?][!$-\[\]-~]*)?"
)
URL_FORM = (
    "a URL such as https://example.com/hooks, in ASCII (names as xn--, paths with %XX), and without user, password,"
    " fragment, spaces or backslashes"
)
# A webhook's receiver recognizes a repeated event by this id.  No dots: the signed text is "id.timestamp.body".
EVENT_ID = re.compile(r"[A-Za-z0-9_:@/+=-]{1,255}")
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Mailbox:
    """The sender or recipient of an email; the domain is in its ASCII form."""

    address: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>" if self.name else self.address

    @classmethod
    def parse(cls, text: str) -> Mailbox:
        """Parse `address` or `Name <address>`."""
        named = re.fullmatch(r'\s*"?([^"<>]*?)"?\s*<([^<>]*)>\s*', text)
        name, address = named.groups() if named else ("", text.strip())
        if not name.isprintable():
            raise ValueError("an email address such as name@example.com, and a name without control characters")
        return cls(mail_address(address), name)


def mail_address(text: str) -> str:
    """Parse one email address."""
    local, _, domain = text.rpartition("@")
    try:
        return f"{_local_part(local)}@{_domain(domain)}"
    except ValueError:
        raise ValueError("an email address such as name@example.com") from None


def _local_part(text: str) -> str:
    if not LOCAL_PART.fullmatch(text) or len(text.encode()) > LOCAL_PART_OCTETS:
        raise ValueError
    return text


def _domain(text: str) -> str:
    """Return the domain in ASCII; refuse one that normalization would change into another."""
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
        """Parse `smtp://user:password@host:587` (STARTTLS unless `?starttls=never`) or `smtps://...@host:465`."""
        # The examples contain no password, because it would be redacted.
        form = "a URL such as smtp://user@host:587 or smtps://user@host:465 (a password follows the user after a colon)"
        try:
            parts = urlsplit(text.strip())
            host, port = _host(parts.hostname or ""), parts.port
            asked = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        except ValueError:
            raise ValueError(
                f"{form} (percent-encode everything except letters and digits in user and password)"
            ) from None
        tls = parts.scheme == "smtps"
        if parts.scheme not in {"smtp", "smtps"} or parts.path.strip("/") or parts.fragment:
            raise ValueError(form)
        if set(asked) - {"starttls"} or asked.get("starttls", "required") not in {"required", "never"}:
            raise ValueError(f"{form}, optionally with ?starttls=required or ?starttls=never")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not (user + password).isascii() or not (user + password + "x").isprintable():
            raise ValueError(f"{form}, with user and password in ASCII")
        starttls = not tls and asked.get("starttls") != "never"
        if user and not (tls or starttls or host in LOOPBACK_NAMES):
            raise ValueError(f"{form}; with starttls=never, the password would be sent unencrypted")
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

    @property
    def origin(self) -> tuple[bool, str, int]:
        """Scheme, host and port."""
        return self.secure, self.host, self.port

    def below(self, name: str) -> HttpUrl:
        """The URL with this name appended to the path; the query is kept."""
        path, mark, query = self.target.partition("?")
        return replace(self, target=f"{path.rstrip('/')}/{name}{mark}{query}")

    def asking(self, name: str, value: str) -> HttpUrl:
        """The URL with one more query parameter, which must need no escaping."""
        return replace(self, target=f"{self.target}{'&' if '?' in self.target else '?'}{name}={value}")

    def __str__(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.target}"

    @classmethod
    def parse(cls, text: str) -> HttpUrl:
        """Parse an absolute http or https URL in plain ASCII, without user, password or fragment."""
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
    """Parse the base URL of a provider: https, or http on loopback."""
    url = HttpUrl.parse(text.strip().rstrip("/"))
    if not url.secure and url.host not in LOOPBACK_NAMES:
        raise ValueError("an https URL (http only on loopback)")
    if "?" in url.target:
        raise ValueError("a URL without a query")
    return url


def _host(text: str) -> str:
    """Parse a host name, removing a trailing dot, or an address (IPv6 without its brackets)."""
    return str(ipaddress.IPv6Address(text)) if ":" in text else _domain(text.removesuffix("."))


def event_id(text: str) -> str:
    """Check the id of a webhook's event."""
    if not EVENT_ID.fullmatch(text):
        raise ValueError("1 to 255 of the characters A-Z a-z 0-9 _ : @ / + = -")
    return text


def token(text: str) -> str:
    """Parse a secret that is sent in a header."""
    word = text.strip()
    if not re.fullmatch(r"[!-~]+", word):
        raise ValueError("one word of printable ASCII characters")
    return word


def signing_secrets(text: str) -> tuple[bytes, ...]:
    """Parse keys in the form that Standard Webhooks gives to receivers: `whsec_` and base64."""
    return tuple(_signing_secret(word) for word in text.split())


def endpoint_secret(secret: bytes, url: str | HttpUrl) -> bytes:
    """Derive the key with which the receiver at this URL verifies signatures; other receivers have other keys."""
    target = HttpUrl.parse(url) if isinstance(url, str) else url
    return hmac.digest(secret, f"webhook endpoint {target}".encode(), "sha256")


def _signing_secret(word: str) -> bytes:
    try:
        key = base64.b64decode(word.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not word.startswith("whsec_") or not 24 <= len(key) <= 64:
        raise ValueError("whsec_ and the base64 of 24 to 64 random bytes, or several of these separated by spaces")
    return key


def plain_address(text: str) -> Address:
    """Parse an address without its zone; an IPv4-mapped IPv6 address becomes the IPv4 address."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


@dataclass(frozen=True)
class Networks:
    """A set of addresses and networks."""

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
                "addresses or networks such as 192.0.2.7 or 10.0.0.0/8, separated by commas; the bits after a network's"
                " prefix must be zero"
            ) from None
