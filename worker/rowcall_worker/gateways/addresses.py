"""The addresses that webhooks may be sent to: the public internet, and nothing behind our firewall."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from rowcall.base.endpoints import HttpUrl
from rowcall.base.errors import Blocked
from rowcall_worker.gateways.sockets import Address

LOOPBACK = "loopback"

# The special addresses in IANA's registries, and one outside them that a cloud uses for a service of its own.
SPECIAL: dict[IPv4Network | IPv6Network, str] = {
    ip_network(network): meaning
    for network, meaning in {
        "0.0.0.0/8": "this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared behind a carrier's NAT",
        "127.0.0.0/8": LOOPBACK,
        "168.63.129.16/32": "a cloud's metadata service",
        "169.254.0.0/16": "link-local, where clouds keep their metadata",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved for protocols",
        "192.0.2.0/24": "for documentation",
        "192.88.99.0/24": "a 6to4 relay",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "for benchmarks",
        "198.51.100.0/24": "for documentation",
        "203.0.113.0/24": "for documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved, or broadcast",
        "::/128": "unspecified",
        "::1/128": LOOPBACK,
        "::/96": "IPv4 embedded in IPv6",
        "::ffff:0:0/96": "IPv4 embedded in IPv6",
        "::ffff:0:0:0/96": "IPv4 embedded in IPv6",
        "64:ff9b::/96": "translated to IPv4 (NAT64)",
        "64:ff9b:1::/48": "translated to IPv4 (NAT64)",
        "2001::/32": "a Teredo tunnel to IPv4",
        "2001::/23": "reserved for protocols",
        "2001:db8::/32": "for documentation",
        "2002::/16": "a 6to4 tunnel to IPv4",
        "3fff::/20": "for documentation",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "ff00::/8": "multicast",
    }.items()
}

# All of IPv6 that is assigned for the public internet; anything else is not public.
PUBLIC_IPV6 = ip_network("2000::/3")


def meaning_of(address: Address) -> str | None:
    """The kind of an address that is not public; None if it is public."""
    for network, meaning in SPECIAL.items():
        if address in network:
            return meaning
    return None if address.version == 4 or address in PUBLIC_IPV6 else "outside the public internet"


def check_host(host: str) -> None:
    """Refuse numbers that some resolvers read as an address: 2130706433, 0x7f.1, 0177.0.0.1."""
    if not re.fullmatch(r"\d+|0x[0-9a-f]*", host.rpartition(".")[2]):
        return
    try:
        ip_address(host)
    except ValueError:
        raise Blocked(
            f"the webhook's host {host} is an unusual spelling of an address: write it as four numbers"
        ) from None


def check(url: HttpUrl, addresses: Sequence[Address], allow_loopback: bool) -> None:
    """Refuse a URL if any of its addresses is not allowed.

    A name with both a public and a private address is a mistake or an attack; using the public one would only hide it.
    """
    for address in addresses:
        meaning = meaning_of(address)
        if allow_loopback and meaning == LOOPBACK:
            continue
        if meaning is not None:
            raise Blocked(
                f"the webhook's host {url.host} is at {address}, which is {meaning}: webhooks are not sent there"
            )
        if not url.secure:
            raise Blocked(f"the webhook's URL {url} must begin with https: http is for loopback only")
