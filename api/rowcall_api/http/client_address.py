"""Finds the address of the client whose request came through the operator's proxies."""

from __future__ import annotations

import ipaddress
import re

import flask

from rowcall.base.endpoints import Address, Networks, plain_address
from rowcall.base.settings import Settings

# Some proxies append the port.
HOP = re.compile(r"\[(?P<v6>[^\[\]]+)\](?::\d+)?|(?P<v4>[\d.]+):\d+|(?P<bare>.+)")

# An IPv6 subscriber usually gets a whole network of this size.
SUBSCRIBER_BITS = 64


def register(app: flask.Flask, settings: Settings) -> None:
    """Read X-Forwarded-For only from the proxies in these settings."""
    app.extensions["trusted_proxies"] = settings.trusted_proxies


def client_address() -> str:
    """Return the address of this request's client, for rate limits."""
    request = flask.request
    proxies = flask.current_app.extensions["trusted_proxies"]
    return client_of(request.remote_addr or "", request.headers.get("X-Forwarded-For"), proxies)


def client_of(sender: str, forwarded: str | None, proxies: Networks | None) -> str:
    """Return the rightmost address that is not a trusted proxy, because each proxy appends the address of its peer.

    The client may have invented the addresses to its left.  For an IPv6 address, return its network.
    """
    address = _address(sender)
    if address is None:
        return sender
    for hop in reversed((forwarded or "").split(",")):
        before = _address(hop) if proxies and address in proxies else None
        if before is None:
            break
        address = before
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address), SUBSCRIBER_BITS), strict=False))


def _address(hop: str) -> Address | None:
    """Return the address of one hop, or None if it is malformed."""
    parts = HOP.fullmatch(hop.strip())
    try:
        return plain_address(next(filter(None, parts.groups()))) if parts else None
    except ValueError:
        return None
