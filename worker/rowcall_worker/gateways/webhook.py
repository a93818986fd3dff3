"""Webhooks: signed POSTs of JSON, as specified by Standard Webhooks.

A receiver identifies the event by the header `webhook-id`, because an event may arrive more than once, and checks
`webhook-signature`: `v1,` and the base64 of the HMAC-SHA256 over id, timestamp and body, joined by dots.  Each URL has
its own secret, which `rowcall webhook-secret` prints for its receiver.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from ssl import SSLContext
from time import time
from typing import NoReturn

from rowcall.base import endpoints
from rowcall.base.endpoints import HttpUrl
from rowcall.base.errors import Blocked, OutcomeUnknown, Refused, Unavailable, Unusable
from rowcall_worker.gateways import addresses
from rowcall_worker.gateways.exchange import Answer, exchange
from rowcall_worker.gateways.sockets import Address, Deadline, resolve, trusting_the_system
from rowcall_worker.gateways.words import describe, excerpt

Resolve = Callable[[str, int, Deadline], list[Address]]

# How long a receiver may be silent; the whole exchange has its own limit.
STEP_SECONDS = 15.0

# Only the text of an error needs the body of an answer.
ANSWER_BYTES = 1024

# 408: the receiver stopped waiting; 425: too early; 429: too many requests.
TEMPORARY = frozenset({408, 425, 429})


class Webhook:
    """Delivers events to public URLs that others have chosen, or to any URL if it is `trusted`: the operator chose it.

    A trusted URL also gets an event that is not signed, if there is no secret.
    """

    def __init__(
        self,
        secrets: Sequence[bytes],
        *,
        allow_loopback: bool,
        timeout: float,
        resolve: Resolve = resolve,
        trusted: bool = False,
    ) -> None:
        self._trusted = trusted
        self._secrets = tuple(secrets)
        self._allow_loopback = allow_loopback
        self._timeout = timeout
        self._resolve = resolve

    @cached_property
    def _context(self) -> SSLContext:
        return trusting_the_system()

    def deliver(self, *, url: str, event_id: str, payload: object) -> str:
        """Deliver one event, and return how it was accepted, such as `HTTP 204`.

        Raises Blocked for a URL that webhooks may not use, Refused if the receiver will never accept it, and
        Unavailable or OutcomeUnknown if it may be tried again, with the same id and a new signature.
        """
        try:
            endpoints.event_id(event_id)
        except ValueError as error:
            raise Unusable(f"the event id {event_id!r} must be {error}") from None
        body = _json(payload)
        deadline = Deadline(self._timeout, STEP_SECONDS)
        target, reachable = self._find(url, deadline)
        return self._send(target, reachable, self._headers(target, event_id, body), body, deadline)

    def ping(self, url: str) -> str:
        """Call a URL without a body or a signature, and return how it was accepted; raises what `deliver` raises."""
        deadline = Deadline(self._timeout, STEP_SECONDS)
        target, reachable = self._find(url, deadline)
        headers = {"User-Agent": "Rowcall"}
        with exchange(target, reachable, headers, b"", deadline, self._context, method="GET") as answer:
            if not 200 <= answer.status < 300:
                _refuse(target, answer)
            return f"HTTP {answer.status}"

    def _send(
        self, target: HttpUrl, reachable: Sequence[Address], headers: Mapping[str, str], body: bytes, deadline: Deadline
    ) -> str:
        """Send the checked and signed request."""
        with exchange(target, reachable, headers, body, deadline, self._context) as answer:
            if not 200 <= answer.status < 300:
                _refuse(target, answer)
            return f"HTTP {answer.status}"

    def _find(self, url: str, deadline: Deadline) -> tuple[HttpUrl, list[Address]]:
        """The parsed URL, and its addresses, all of which are allowed."""
        try:
            target = HttpUrl.parse(url)
        except ValueError as error:
            raise Blocked(f"the webhook's URL {url[:200]!r} must be {error}") from None
        if not self._trusted:
            if not (target.secure or self._allow_loopback):
                raise Blocked(f"the webhook's URL {target} must begin with https")
            addresses.check_host(target.host)
        try:
            found = self._resolve(target.host, target.port, deadline)
        except OSError as error:
            raise Unavailable(
                f"the webhook's host {target.host} cannot be resolved at the moment: {describe(error)}"
            ) from error
        if not self._trusted:
            addresses.check(target, found, self._allow_loopback)
        return target, found

    def _headers(self, target: HttpUrl, event_id: str, body: bytes) -> dict[str, str]:
        sent_at = str(int(time()))
        signed = f"{event_id}.{sent_at}.".encode() + body
        secrets = (endpoints.endpoint_secret(secret, target) for secret in self._secrets)
        digests = (hmac.digest(secret, signed, "sha256") for secret in secrets)
        signature = " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
        return {
            "Content-Type": "application/json",
            "User-Agent": "Rowcall",
            "webhook-id": event_id,
            "webhook-timestamp": sent_at,
            **({"webhook-signature": signature} if signature else {}),
        }


def _json(payload: object) -> bytes:
    """Serialize the payload to the same bytes in every attempt."""
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unusable(f"the webhook's payload cannot be written as JSON: {error}") from None


def _refuse(url: HttpUrl, answer: Answer) -> NoReturn:
    """Raise the error that corresponds to an unsuccessful answer."""
    told = f"{url.authority} answered the webhook with {answer.status}"
    if 300 <= answer.status < 400:
        raise Refused(f"{told}: redirects are not followed; use the final URL")
    told = f"{told} {excerpt(answer.read(ANSWER_BYTES))}".rstrip()
    if answer.status in TEMPORARY:
        raise Unavailable(told, answer.retry_after)
    if 400 <= answer.status < 500:
        raise Refused(told)
    # A server that failed, or a proxy before it, does not know how far the receiver got.
    raise OutcomeUnknown(told, answer.retry_after)
