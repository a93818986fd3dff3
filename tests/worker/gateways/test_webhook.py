"""Webhooks: what a receiver gets and can verify, and where they are not sent."""

from __future__ import annotations

import base64
import hmac
import json
from datetime import UTC, datetime
from ipaddress import ip_address

import pytest

from rowcall.base.endpoints import endpoint_secret
from rowcall.base.errors import Blocked, OutcomeUnknown, Unavailable, Unusable
from rowcall_worker.gateways.sockets import Address, Deadline
from rowcall_worker.gateways.webhook import Webhook
from tests.support.servers.authority import Authority
from tests.support.servers.web import WebServer, answers, serving
from tests.worker.gateways.delivering import LONG, OLD_SECRET, SECRET, Names, deliver, gateway


def test_a_receiver_gets_the_event_and_can_check_who_signed_it(sink: WebServer) -> None:
    payload = {"type": "order.paid", "data": {"name": "Zoë", "amount": 1}}
    webhook = Webhook([SECRET, OLD_SECRET], allow_loopback=True, timeout=LONG)
    before = int(datetime.now(UTC).timestamp())
    assert deliver(f"{sink.url}/hooks?to=ada", webhook, payload=payload) == "HTTP 204"
    (request,) = sink.requests
    assert (request.method, request.path) == ("POST", "/hooks?to=ada")
    assert request.body == '{"data":{"amount":1,"name":"Zoë"},"type":"order.paid"}'.encode()
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Host"] == f"127.0.0.1:{sink.port}"
    assert request.headers["webhook-id"] == "evt_1"
    sent_at = request.headers["webhook-timestamp"]
    assert before <= int(sent_at) <= int(datetime.now(UTC).timestamp())
    signed = f"evt_1.{sent_at}.".encode() + request.body
    secrets = [endpoint_secret(secret, f"{sink.url}/hooks?to=ada") for secret in (SECRET, OLD_SECRET)]
    for secret, signature in zip(secrets, request.headers["webhook-signature"].split(" "), strict=True):
        assert signature == "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()


def test_each_endpoint_has_a_secret_of_its_own_which_does_not_tell_any_other() -> None:
    urls = ["https://a.example/hooks", "https://a.example/hooks/2", "https://b.example/hooks", "http://a.example/hooks"]
    secrets = {endpoint_secret(SECRET, url) for url in urls} | {endpoint_secret(OLD_SECRET, urls[0]), SECRET}
    assert len(secrets) == 6
    assert {len(secret) for secret in secrets - {SECRET}} == {32}
    assert endpoint_secret(SECRET, "HTTPS://A.example.:443/hooks") == endpoint_secret(SECRET, urls[0])


def test_another_attempt_is_the_same_event_in_the_same_bytes(sink: WebServer) -> None:
    sink.misbehave(answers(500))
    with pytest.raises(OutcomeUnknown):
        deliver(sink.url, payload={"b": 1, "a": [1, 2]})
    deliver(sink.url, payload={"a": [1, 2], "b": 1})
    first, second = sink.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


def test_https_proves_the_host_by_its_name_though_the_address_is_connected_to(trusted: Authority) -> None:
    names = Names(hooks=["127.0.0.1"])
    with serving(WebServer(), trusted.server_context("hooks.example")) as server:
        deliver(f"https://hooks.example.:{server.port}/x", gateway(names=names))
    assert server.requests[0].headers["Host"] == f"hooks.example:{server.port}"
    assert names.asked == 1


def test_a_certificate_for_another_name_gets_no_event(trusted: Authority) -> None:
    with serving(WebServer(), trusted.server_context("other.example")) as server:
        webhook = gateway(names=Names(hooks=["127.0.0.1"]))
        with pytest.raises(Unavailable, match="certificate is not valid for 'hooks.example'"):
            deliver(f"https://hooks.example:{server.port}/x", webhook)
    assert server.requests == []


def test_a_certificate_of_nobody_gets_no_event(authority: Authority) -> None:
    with serving(WebServer(), authority.server_context("127.0.0.1")) as server:
        with pytest.raises(Unavailable, match="certificate verify failed") as error:
            deliver(server.url)
        assert error.value.acted == "no"
    assert server.requests == []


def test_the_second_address_is_tried_when_the_first_does_not_answer(sink: WebServer) -> None:
    names = Names(hooks=["127.0.0.2", "127.0.0.1"])
    assert deliver(f"http://hooks.example:{sink.port}/x", gateway(names=names)) == "HTTP 204"


def test_an_address_of_ipv6_is_a_host_like_any_other(sink: WebServer) -> None:
    class Elsewhere(Names):
        def __call__(self, host: str, port: int, deadline: Deadline) -> list[Address]:
            assert host == "2606:4700::beef"
            return [ip_address("127.0.0.1")]

    deliver(f"http://[2606:4700:0::BEEF]:{sink.port}/x", gateway(names=Elsewhere()))
    assert sink.requests[0].headers["Host"] == f"[2606:4700::beef]:{sink.port}"


def test_a_name_that_leads_anywhere_private_is_blocked_before_anything_is_sent(sink: WebServer) -> None:
    for addresses in (["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["127.0.0.1", "169.254.169.254"]):
        with pytest.raises(Blocked) as error:
            deliver(f"http://hooks.example:{sink.port}/x", gateway(names=Names(hooks=addresses)))
        assert error.value.permanent
    assert sink.requests == []


def test_loopback_is_blocked_unless_it_is_allowed(sink: WebServer) -> None:
    webhook = gateway(allow_loopback=False)
    for url in (f"https://127.0.0.1:{sink.port}/", f"https://localhost:{sink.port}/", f"https://[::1]:{sink.port}/"):
        with pytest.raises(Blocked, match="which is loopback: webhooks are not sent there"):
            deliver(url, webhook)
    with pytest.raises(Blocked, match="must begin with https"):
        deliver(sink.url, webhook)
    assert sink.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.0.1\\@example.com/",
        "https://user:secret@example.com/",
        "https://user@example.com/",
        "https://@example.com/",
        "https://example.com/#fragment",
        "https://example.com/#",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:x/",
        "https://exa mple.com/",
        "https://example.com/a b",
        "https://example.com/\r\nX-Injected: 1",
        "https://example.com/\nGET /admin",
        "https://exa\tmple.com/",
        " https://example.com/",
        "https://example.com/\0",
        "https://bücher.example/",
        "https://ⓔxample.com/",
        "https://example。com/",
        "https://example.com/pfad-ü",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://[::1]example.com/",
        "https://example.com:/",
        "https://example.com:+443/",
        "https://example.com:4_4/",
        "https://::1/",
        "https://[v1.fe80::a]/",
        "https://example..com/",
        "https:///path",
        "https:example.com",
        "//example.com/",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:25/",
        "javascript:alert(1)",
        "",
    ],
)
def test_an_odd_url_is_blocked_whatever_is_allowed(url: str) -> None:
    with pytest.raises(Blocked) as error:
        deliver(url, gateway(names=Names()))
    assert (error.value.acted, error.value.permanent) == ("no", True)


def test_ipv4_in_the_clothes_of_ipv6_is_blocked_even_where_loopback_is_allowed(sink: WebServer) -> None:
    with pytest.raises(Blocked, match="is at ::ffff:.*1, which is IPv4 embedded in IPv6"):
        deliver(f"http://[::ffff:127.0.0.1]:{sink.port}/")
    assert sink.requests == []


def test_no_proxy_of_the_environment_gets_between(sink: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(WebServer()) as proxy:
        for variable in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(variable, proxy.url)
        deliver(sink.url)
    assert (len(sink.requests), proxy.requests) == (1, [])


@pytest.mark.parametrize("event_id", ["", "a.b", "a b", "a\r\nX: 1", "ü", "x" * 256, "a,b"])
def test_an_event_id_must_leave_no_doubt_in_what_is_signed(event_id: str) -> None:
    with pytest.raises(Unusable, match="the event id .* must be"):
        deliver("https://example.com/", gateway(names=Names()), event_id=event_id)


@pytest.mark.parametrize("payload", [{"a": float("nan")}, {"a": object()}, {"a": "\ud800"}])
def test_a_payload_that_is_no_json_is_refused(payload: object) -> None:
    with pytest.raises(Unusable, match="the webhook's payload cannot be written as JSON"):
        deliver("https://example.com/", gateway(names=Names()), payload=payload)


def test_what_is_delivered_reads_as_json(sink: WebServer) -> None:
    deliver(sink.url, payload=[1, "two", None, {"drei": "ß"}])
    assert json.loads(sink.requests[0].body) == [1, "two", None, {"drei": "ß"}]
