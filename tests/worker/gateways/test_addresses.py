"""Webhooks may go to the public internet only, and there is no way around that."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.base.endpoints import HttpUrl
from rowcall.base.errors import Blocked
from rowcall_worker.gateways.addresses import PUBLIC_IPV6, SPECIAL, check, check_host, meaning_of

BLOCKED = [
    # this machine
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("::1", "loopback"),
    ("0.0.0.0", "this network"),  # noqa: S104 - nothing is bound to it
    ("0.1.2.3", "this network"),
    ("::", "unspecified"),
    # private networks
    ("10.0.0.1", "private"),
    ("10.255.255.255", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.0.1", "private"),
    ("100.64.0.1", "carrier"),
    ("100.127.255.255", "carrier"),
    ("fc00::1", "private"),
    ("fdff:ffff::1", "private"),
    ("fec0::1", "outside the public internet"),
    ("169.254.0.1", "link-local"),
    ("fe80::1", "link-local"),
    ("febf::1", "link-local"),
    # metadata services of clouds
    ("169.254.169.254", "metadata"),
    ("169.254.170.2", "metadata"),
    ("168.63.129.16", "metadata"),
    ("100.100.100.200", "carrier"),
    ("192.0.0.192", "reserved"),
    ("fd00:ec2::254", "private"),
    # IPv4 addresses inside IPv6
    ("::ffff:127.0.0.1", "embedded in IPv6"),
    ("::ffff:169.254.169.254", "embedded in IPv6"),
    ("::ffff:8.8.8.8", "embedded in IPv6"),
    ("::127.0.0.1", "embedded in IPv6"),
    ("::8.8.8.8", "embedded in IPv6"),
    ("::ffff:0:127.0.0.1", "embedded in IPv6"),
    ("64:ff9b::127.0.0.1", "NAT64"),
    ("64:ff9b::a9fe:a9fe", "NAT64"),
    ("64:ff9b::8.8.8.8", "NAT64"),
    ("64:ff9b:1::10.0.0.1", "NAT64"),
    ("64:ff9b:1:ffff::1", "NAT64"),
    ("2002:7f00:1::", "6to4"),
    ("2002:a9fe:a9fe::1", "6to4"),
    ("2001::1", "Teredo"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
    ("192.88.99.1", "6to4"),
    # multicast, and no host at all
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("ff02::1", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("192.0.2.1", "documentation"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.255", "documentation"),
    ("2001:db8::1", "documentation"),
    ("3fff:fff::1", "documentation"),
    ("198.18.0.1", "benchmarks"),
    ("198.19.255.255", "benchmarks"),
    ("2001:2::1", "reserved"),
    ("2001:10::1", "reserved"),
    ("100::1", "outside the public internet"),
    ("5f00::1", "outside the public internet"),
    ("4000::1", "outside the public internet"),
    ("e000::1", "outside the public internet"),
]

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "126.255.255.255",
    "128.0.0.1",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.1",
    "192.167.255.255",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2003::1",
]

HTTPS = HttpUrl.parse("https://hooks.example.com/x")


@pytest.mark.parametrize(("address", "meaning"), BLOCKED)
def test_an_address_that_is_not_public_is_blocked_and_named(address: str, meaning: str) -> None:
    with pytest.raises(
        Blocked, match=f"hooks.example.com is at .*, which is .*{meaning}.*: webhooks are not sent there"
    ):
        check(HTTPS, [ip_address(address)], allow_loopback=False)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_open(address: str) -> None:
    check(HTTPS, [ip_address(address)], allow_loopback=False)


def test_one_blocked_address_blocks_the_whole_name() -> None:
    for addresses in (["8.8.8.8", "10.0.0.1"], ["::1", "8.8.8.8"], ["8.8.8.8", "2606:4700::1", "169.254.169.254"]):
        with pytest.raises(Blocked):
            check(HTTPS, [ip_address(address) for address in addresses], allow_loopback=False)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_is_open_where_that_is_set_and_nothing_else_is(address: str) -> None:
    check(HTTPS, [ip_address(address)], allow_loopback=True)
    check(HttpUrl.parse("http://localhost/x"), [ip_address(address)], allow_loopback=True)
    for other in ("10.0.0.1", "::ffff:127.0.0.1", "169.254.169.254"):
        with pytest.raises(Blocked):
            check(HTTPS, [ip_address(address), ip_address(other)], allow_loopback=True)
    with pytest.raises(Blocked, match="http is for loopback only"):
        check(HttpUrl.parse("http://hooks.example.com/x"), [ip_address("8.8.8.8")], allow_loopback=True)


@given(st.ip_addresses())
def test_whatever_the_standard_library_knows_not_to_be_public_is_blocked(address: object) -> None:
    given_address = ip_address(str(address))
    if not given_address.is_global:
        assert meaning_of(given_address) is not None


def test_the_edges_of_every_special_network_are_in_it_and_its_neighbours_are_not_forgotten() -> None:
    for network in SPECIAL:
        assert meaning_of(network[0]) is not None
        assert meaning_of(network[-1]) is not None
    for before, after in pairwise(sorted(network for network in SPECIAL if network.version == 4)):
        assert before.broadcast_address < after.network_address
    assert not PUBLIC_IPV6.overlaps(ip_network("fc00::/7"))


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "10.0.0.0x1",
        "010.0.0.1",
        "1",
        "0x",
        "256.0.0.1",
        "127.0.0.1.1",
        "example.0x7f",
        "0",
    ],
)
def test_a_number_in_an_odd_spelling_is_no_host(host: str) -> None:
    with pytest.raises(Blocked, match="an unusual spelling of an address"):
        check_host(host)


@pytest.mark.parametrize(
    "host", ["8.8.8.8", "::1", "2606:4700::1111", "example.com", "0x7f.example", "1.example", "x1"]
)
def test_an_ordinary_host_is_one(host: str) -> None:
    check_host(host)
