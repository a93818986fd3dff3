"""How often a key may call, and how often an address may offer wrong keys; what the answers say about it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import flask
from werkzeug.exceptions import TooManyRequests

from rowcall.base import clock
from rowcall.base.settings import Settings
from rowcall_api.http.token_bucket import Answer, Buckets, Policy

# A person with a wrong key needs a few tries; whoever guesses needs more than there will ever be.
WRONG_KEYS = Policy(per_second=0.1, burst=20)


@dataclass(frozen=True)
class Limits:
    """The buckets of one process."""

    keys: Buckets
    addresses: Buckets


def register(app: flask.Flask, chosen: Settings) -> None:
    """Count this application's requests, and tell the callers; a limit of 0 counts nothing."""
    if not chosen.rate_limit:
        return
    policy = Policy(chosen.rate_limit, chosen.rate_burst)
    app.extensions["limits"] = Limits(
        *(Buckets(whole.share(chosen.api_workers)) for whole in (policy, WRONG_KEYS)),
    )
    app.after_request(_tell)


def before_lookup(key: str) -> None:
    """TooManyRequests where the key has had its share, or the address has offered too many wrong ones.

    A key that was right before is not held up by its neighbours' wrong ones: behind a proxy all have one address.
    """
    limits = _limits()
    if limits is None:
        return
    if limits.keys.knows(_digest(key)):
        _pass(limits.keys.take(_digest(key), clock.elapsed()), "this key")
        return
    tries = limits.addresses.look(flask.request.remote_addr, clock.elapsed())
    if not tries.granted:
        raise TooManyRequests("too many wrong keys came from this address", retry_after=tries.seconds)


def after_lookup(key: str, known: bool) -> None:
    """Count a key that was met for the first time, or a wrong one."""
    limits = _limits()
    if limits is None:
        return
    if not known:
        limits.keys.forget(_digest(key))
        limits.addresses.take(flask.request.remote_addr, clock.elapsed())
    elif not limits.keys.knows(_digest(key)):
        _pass(limits.keys.take(_digest(key), clock.elapsed()), "this key")


def _pass(answer: Answer, who: str) -> None:
    flask.g.rate = answer
    if not answer.granted:
        raise TooManyRequests(
            f"{who} has made all the requests it may for now; ROWCALL_RATE_LIMIT and ROWCALL_RATE_BURST say how many",
            retry_after=answer.seconds,
        )


def _tell(response: flask.Response) -> flask.Response:
    """draft-ietf-httpapi-ratelimit-headers, as of its version 11: what this process lets through, and what is left."""
    answer: Answer | None = flask.g.get("rate")
    limits = _limits()
    if answer and limits:
        policy = limits.keys.policy
        response.headers["RateLimit-Policy"] = f'"key";q={int(policy.burst)};w={policy.window}'
        response.headers["RateLimit"] = f'"key";r={answer.left};t={answer.seconds}'
    return response


def _limits() -> Limits | None:
    found: Limits | None = flask.current_app.extensions.get("limits")
    return found


def _digest(key: str) -> bytes:
    """What a key is remembered by: the memory of a process need not hold keys."""
    return hashlib.sha256(key.encode()).digest()
