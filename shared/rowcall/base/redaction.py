"""Removes secrets from text: stored errors, log lines and command output.

It removes three things: the values of secret settings, text in places where secrets are written (in URLs, in DSNs,
after names such as `token`), and text that looks like a token.  Every pattern runs in time proportional to the text's
length, because a caller who causes an error may also choose its text.
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

# Only this much of a text is searched: searching a hundred megabytes would stop all threads for seconds.  If the cut
# divides a secret, it must do so far from the part of the text that is kept.
SEARCHED_CHARACTERS = 200_000

# Not one of Rowcall's settings, but libpq reads the database's password from it.
PASSWORD_VARIABLES = ("PGPASSWORD",)

# A shorter secret occurs in ordinary text, so it is removed only in the places that the patterns know.
SHORTEST = 4
# A shorter secret is removed only as a whole word, a longer one also within words.
SHORTEST_WITHIN_WORDS = 8

_NAME = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"
_SECRETS_NAME = re.compile(rf"{_NAME}$", re.IGNORECASE)
# A quoted value ends at the same kind of quote, which may itself be escaped; an unclosed one ends with its line.
_QUOTED = r"""(?P<quote>\\{0,3}["'])(?:(?!(?P=quote))(?:\\.|[^\n]))*+(?:(?P=quote))?"""
# An unquoted value ends before the bracket or comma that ends it in a call or a list.
_BARE = r"""(?!(?:none|null|true|false)\b)[^\s&"']*[^\s&"'),;\]}]"""

# Patterns and their replacements.  An unbounded repetition stops at a character that can begin the next match, and is
# possessive (`*+`) where backtracking cannot help, so no part of a string is read more than a few times.
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
        # password='...' in a DSN, a query or a call, and password: '...' in YAML.  With spaces around the =, or after a
        # colon, an unquoted value is program text.
        (rf"({_NAME}\s{{0,3}}[:=]\s{{0,3}}){_QUOTED}", rf"\1\g<quote>{BLANK}\g<quote>"),
        (rf"({_NAME}=)(?!=){_BARE}", rf"\1{BLANK}"),
        # Parameters in SQLAlchemy's errors, and lines of SQL with literals in PostgreSQL's errors.
        (r"((?:\[parameters|(?<![^\n])LINE \d{1,9}): )[^\n]*+", rf"\1{BLANK}"),
        # An API key keeps its prefix, so that an operator can find and revoke it.
        (r"\b(rc_[0-9a-f]{8})_[0-9a-f]{8,}+", rf"\1_{BLANK}"),
        (r"\b((?:sk|rk)_(?:live|test)_|gh[a-z]_|xox[a-z]-)[a-z0-9-]{6,}+", rf"\1{BLANK}"),
        # Secrets that sign webhooks: base64.
        (r"\b(whsec_)[\w+/=-]{6,}+", rf"\1{BLANK}"),
        # A JSON Web Token: two objects and a signature.
        (r"(?-i:(?<![\w-])eyJ[\w-]{5,}+\.eyJ)[\w-]{5,}+(?:\.[\w-]*+)?", BLANK),
    )
)


def redacted(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text without secrets."""
    # First the known secrets: a pattern may remove half of one, and the other half would not be recognized.
    known = _known(tuple(_secrets(environment)))
    if known is not None:
        text = known.sub(BLANK, text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def names_a_secret(name: str) -> bool:
    """Whether a field of this name has a secret as its value."""
    return _SECRETS_NAME.search(name) is not None


def storable(text: str) -> str:
    """Remove null characters and replace unpaired surrogates with `?`, so that PostgreSQL can store the text."""
    return text.replace("\0", "").encode(errors="replace").decode()


def fit_to_keep(text: str) -> str:
    """Make text from outside storable and redact it.  Truncate only afterwards: half a secret is not recognized."""
    # Characters that cannot be stored are removed first, because one may split a secret.
    return redacted(storable(text))


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the secret values that are set, valid or not."""
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
    """Return one pattern for all forms of the secrets in these values, the longest first."""
    parts = [_parts_of(value.strip()) for value in values if value.strip()]
    shown = {text for public, _ in parts for text in public}
    # A password that equals the name of a user, host or database is not redacted; that would hide the name everywhere.
    secrets = {text for _, secret in parts for text in secret} - shown
    written = {form for text in secrets if len(text) >= SHORTEST and text.strip("*") for form in _written(text)}
    if not written:
        return None
    return re.compile("|".join(map(_anywhere, sorted(written, key=len, reverse=True))))


def _parts_of(value: str) -> tuple[set[str], set[str]]:
    """Split a value into public and secret parts; in a URL, the password and the query's tokens are secret."""
    scheme, separator, rest = value.partition("://")
    keywords = None if separator else connection_keywords(value)
    if keywords and "password" in keywords:
        return {keywords.get(name, "") for name in ("user", "host", "dbname")}, {keywords["password"]}
    if not separator:
        return set(), {value, *value.split()}  # during a rotation, a setting contains two secrets
    words = value.split()
    if len(words) > 1 and all("://" in word for word in words):  # a list of URLs
        public, secret = zip(*map(_parts_of, words), strict=True)
        return set().union(*public), set().union(*secret)
    # Everything up to the last @, because a password may contain characters that should have been escaped.
    password = rest.rpartition("@")[0].partition(":")[2]
    secrets = {password, unquote(password)}
    web = scheme in {"http", "https"}
    if web:
        secrets.add(value)  # the whole URL may be a secret, such as a chat's incoming webhook
    try:
        parts = urlsplit(value)
    except ValueError:
        return set(), secrets
    if web and len(parts.path) > SHORTEST_WITHIN_WORDS:
        secrets.add(parts.path)  # a receiver may repeat it in an error
    secrets |= {parts.password or "", unquote(parts.password or "")}
    secrets |= {text for name, text in parse_qsl(parts.query) if re.search(_NAME, name, re.IGNORECASE)}
    database = "" if web else parts.path.lstrip("/")
    return {unquote(parts.username or ""), parts.hostname or "", database}, secrets


def _written(secret: str) -> set[str]:
    """Return the forms in which text may contain the secret: plain, in a URL, in JSON, in a Python literal."""
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
    """Return a pattern that matches the secret."""
    literal = re.escape(secret)
    return literal if len(secret) >= SHORTEST_WITHIN_WORDS else rf"(?<!\w){literal}(?!\w)"
