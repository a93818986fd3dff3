"""Removes secrets from text: stored errors, log lines and command output.

It removes three things: the values of the secret settings anywhere, what follows names and prefixes of secrets
(in URLs, in DSNs, behind names such as `token`), and what looks like a token.  Every pattern takes time in proportion
to the text's length, because a caller who provokes an error may also choose its text.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from rowcall.base.errors import SettingsError
from rowcall.base.parsing import Setting, connection_keywords
from rowcall.base.settings import all_settings

BLANK = "***"

# Not a setting of ours, but libpq reads it, so it may hold the database's password.
PASSWORD_VARIABLES = ("PGPASSWORD",)

# A shorter secret is found in ordinary words; only the place where it stands can give it away.
SHORTEST = 4
# A shorter one is removed only as a whole word, a longer one anywhere.
SHORTEST_WITHIN_WORDS = 8

_NAME = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"
# A value in quotes ends at the same kind of quote, which may itself be escaped; one never closed ends with its line.
_QUOTED = r"""(?P<quote>\\{0,3}["'])(?:(?!(?P=quote))(?:\\.|[^\n]))*+(?:(?P=quote))?"""
# A bare value ends before what closes the call or the list that it stands in.
_BARE = r"""(?!(?:none|null|true|false)\b)[^\s&"']*[^\s&"'),;\]}]"""

# Each with what is put in its place.  What may run on ends at a character with which the next match could begin, and
# is possessive (`*+`) where it might be tried again in vain: so no part of a text is read more than a few times.
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        # postgresql://user:password@host; a port is not a password, even before an @.
        (r'(://[^\s:/?#@"]*+):(?!\d+[?#])[^\s/"]*@', rf"\1:{BLANK}@"),
        # Authorization: Bearer ..., in a header, in JSON or in a repr.
        (
            r"""(authorization\\{0,3}["']?\s{0,3}[:=,]\s{0,3}\\{0,3}["']?(?:(?:bearer|basic|token)\s)?)[^\s"'\\]++""",
            rf"\1{BLANK}",
        ),
        (r"(\bbearer\s)(?=[^\s\d]{0,200}\d)[\w.~+/=-]{16,}+", rf"\1{BLANK}"),
        # X-Api-Key: ...
        (r"""(\bx-[\w-]{0,40}(?:key|token|secret):\s{0,3})[^\s"'\\]++""", rf"\1{BLANK}"),
        # {"token": "..."}, {'token': '...'}, {\"token\": 12345}
        (rf"""({_NAME}\\{{0,3}}["']\s{{0,3}}:\s{{0,3}})(?:{_QUOTED}|\d{{4,}}+)""", rf"\1\g<quote>{BLANK}\g<quote>"),
        # password='...' in a DSN, a query or a call; with spaces around the sign, it is bare only in program text.
        (rf"({_NAME}\s{{0,3}}=\s{{0,3}}){_QUOTED}", rf"\1\g<quote>{BLANK}\g<quote>"),
        (rf"({_NAME}=)(?!=){_BARE}", rf"\1{BLANK}"),
        # What SQLAlchemy shows of a statement's parameters, and PostgreSQL of the line with the literals in it.
        (r"((?:\[parameters|(?<![^\n])LINE \d{1,9}): )[^\n]*+", rf"\1{BLANK}"),
        # A key of ours keeps its prefix, by which it is found and revoked.
        (r"\b(rc_[0-9a-f]{8})_[0-9a-f]{8,}+", rf"\1_{BLANK}"),
        (r"\b((?:sk|rk)_(?:live|test)_|gh[a-z]_|xox[a-z]-)[a-z0-9-]{6,}+", rf"\1{BLANK}"),
        # What signs webhooks: base64.
        (r"\b(whsec_)[\w+/=-]{6,}+", rf"\1{BLANK}"),
        # A JSON Web Token: two objects and a signature.
        (r"(?-i:(?<![\w-])eyJ[\w-]{5,}+\.eyJ)[\w-]{5,}+(?:\.[\w-]*+)?", BLANK),
    )
)


def redacted(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The same text, fit for a log, an error, or a screen."""
    # The known ones first: a pattern may take away half of one, and the other half would no longer be known.
    known = _known(tuple(_secrets(environment)))
    if known is not None:
        text = known.sub(BLANK, text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def storable(text: str) -> str:
    """The text without null characters, and with `?` for unpaired surrogates, so that PostgreSQL can store it."""
    return text.replace("\0", "").encode(errors="replace").decode()


def fit_to_keep(text: str) -> str:
    """Somebody else's words, storable and redacted; whole, because a cut made before would hide half of a secret."""
    # What cannot be stored goes first: without it, what stood around it may be a secret.
    return redacted(storable(text))


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    """The secret values that are set, valid or not."""
    for setting in _secret_settings():
        yield environment.get(setting.variable, "")
        with suppress(SettingsError):
            yield setting.text(environment)
    for variable in PASSWORD_VARIABLES:
        yield environment.get(variable, "")


@functools.cache
def _secret_settings() -> tuple[Setting, ...]:
    return tuple(setting for setting in all_settings().values() if setting.secret)


@functools.lru_cache(maxsize=8)
def _known(values: tuple[str, ...]) -> re.Pattern[str] | None:
    """One pattern for all ways in which the secrets among these values may be written; the longest first."""
    parts = [_parts_of(value.strip()) for value in values if value.strip()]
    shown = {text for public, _ in parts for text in public}
    # A password that is also the name of a user, a host or a database is none; it would only hide that name everywhere.
    secrets = {text for _, secret in parts for text in secret} - shown
    written = {form for text in secrets if len(text) >= SHORTEST and text.strip("*") for form in _written(text)}
    if not written:
        return None
    return re.compile("|".join(map(_anywhere, sorted(written, key=len, reverse=True))))


def _parts_of(value: str) -> tuple[set[str], set[str]]:
    """What of a value may be shown, and what is secret: all of it; of a URL the password, and its query's tokens."""
    scheme, separator, rest = value.partition("://")
    keywords = None if separator else connection_keywords(value)
    if keywords and "password" in keywords:
        return {keywords.get(name, "") for name in ("user", "host", "dbname")}, {keywords["password"]}
    if not separator:
        return set(), {value, *value.split()}  # while one secret takes another's place, a setting holds both
    # Everything up to the last @, because a password may hold what should have been escaped.
    password = rest.rpartition("@")[0].partition(":")[2]
    secrets = {password, unquote(password)}
    if scheme in {"http", "https"}:
        secrets.add(value)  # a secret as a whole, as a chat's incoming webhooks are
    try:
        parts = urlsplit(value)
    except ValueError:
        return set(), secrets
    secrets |= {parts.password or "", unquote(parts.password or "")}
    secrets |= {text for name, text in parse_qsl(parts.query) if re.search(_NAME, name, re.IGNORECASE)}
    return {unquote(parts.username or ""), parts.hostname or "", parts.path.lstrip("/")}, secrets


def _written(secret: str) -> set[str]:
    """The forms in which a text may hold it: as it is, in a URL, in JSON, as Python writes it."""
    in_urls = {quote(secret, safe="", errors="replace"), quote(secret, errors="replace"), quote_plus(secret)}
    return {
        secret,
        *in_urls,
        *map(_lower_case_escapes, in_urls),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        repr(secret.encode(errors="replace"))[2:-1],
    }


def _lower_case_escapes(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), text)


def _anywhere(secret: str) -> str:
    """A pattern that finds it."""
    literal = re.escape(secret)
    return literal if len(secret) >= SHORTEST_WITHIN_WORDS else rf"(?<!\w){literal}(?!\w)"
