"""Limits on calls per key and on wrong keys per address, and the headers that report them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import flask
from werkzeug.exceptions import TooManyRequests

from rowcall.base import clock
from rowcall.base.settings import Settings
from rowcall_api.http.client_address import client_address
from rowcall_api.http.token_bucket import Answer, Buckets, Policy
from rowcall_api.http.waiting.parking import memory

# Enough for a person with a wrong key, and far too few to guess a key.
WRONG_KEYS = Policy(per_second=0.1, burst=20)


@dataclass(frozen=True)
class Limits:
    """The buckets of one process."""

    keys: Buckets
    addresses: Buckets


def register(app: flask.Flask, settings: Settings) -> None:
    """Enable the rate limits of this application, unless ROWCALL_RATE_LIMIT is 0."""
    if not settings.rate_limit:
        return
    of_a_key = Policy(settings.rate_limit, settings.rate_burst)
    app.extensions["limits"] = Limits(
        *(Buckets(limit.share(settings.api_workers)) for limit in (of_a_key, WRONG_KEYS)),
    )
    app.after_request(_report)


def before_lookup(key: str) -> None:
    """Raise TooManyRequests if this key, known to be valid, is over its limit; this needs no query."""
    limits = _limits()
    flask.g.rate = memory().get("rate")
    if limits and not flask.g.rate and limits.keys.knows(_digest(key)):
        _pass(limits.keys.take(_digest(key), clock.elapsed()))


def after_lookup(key: str, known: bool) -> None:
    """Count the first use of a key, or a wrong key."""
    limits = _limits()
    if limits is None:
        return
    if not known:
        limits.keys.forget(_digest(key))
        count_wrong_key()
    elif not flask.g.rate and not limits.keys.knows(_digest(key)):
        _pass(limits.keys.take(_digest(key), clock.elapsed()))


def count_wrong_key() -> None:
    """Raise TooManyRequests if this address has sent too many wrong or malformed keys.

    A valid key is never refused because of others' wrong keys: behind a proxy, all callers may share an address.
    """
    limits = _limits()
    if limits is None:
        return
    tries = limits.addresses.take(client_address(), clock.elapsed())
    if not tries.granted:
        raise TooManyRequests("too many wrong keys came from this address", retry_after=tries.seconds)


def _pass(answer: Answer) -> None:
    # A request that waited is counted once.
    flask.g.rate = memory()["rate"] = answer
    if not answer.granted:
        raise TooManyRequests(
            "this key is over its rate limit (ROWCALL_RATE_LIMIT, ROWCALL_RATE_BURST)",
            retry_after=answer.seconds,
        )


def _report(response: flask.Response) -> flask.Response:
    """Report the limits as in draft-ietf-httpapi-ratelimit-headers, version 11: the policy and what is left."""
    answer: Answer | None = flask.g.get("rate")
    limit = policy()
    if answer and limit:
        response.headers["RateLimit-Policy"] = f'"key";q={limit.quota};w={limit.window}'
        response.headers["RateLimit"] = f'"key";r={answer.left};t={answer.seconds}'
    return response


def policy() -> Policy | None:
    """Return the limit of each key in this process, as the headers report it; None if there is none."""
    limits = _limits()
    return limits.keys.policy if limits else None


def _limits() -> Limits | None:
    limits: Limits | None = flask.current_app.extensions.get("limits")
    return limits


def _digest(key: str) -> bytes:
    """Return the digest of a key, so that no key is kept in memory."""
    return hashlib.sha256(key.encode()).digest()
