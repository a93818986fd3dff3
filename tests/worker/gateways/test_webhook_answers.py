"""The error for each answer that a webhook receiver may give, and for no answer."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from rowcall.base.errors import GatewayError, OutcomeUnknown, Refused, Unavailable
from tests.support.servers import web
from tests.support.servers.web import Behaviour, WebServer, answers
from tests.worker.gateways.delivering import LONG, SHORT, deliver, gateway


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(sink: WebServer, status: int) -> None:
    sink.misbehave(answers(status, Location=f"{sink.url}/elsewhere"))
    with pytest.raises(Refused, match=f"answered the webhook with {status}: redirects are not followed"):
        deliver(sink.url)
    assert len(sink.requests) == 1


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_success_is_one(sink: WebServer, status: int) -> None:
    sink.misbehave(answers(status, b"a stranger's words"))
    assert deliver(sink.url) == f"HTTP {status}"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 422, 451])
def test_a_refusal_is_final(sink: WebServer, status: int) -> None:
    sink.misbehave(answers(status, b"no\x00pe\x1b[31m, " + b"never " * 1000))
    with pytest.raises(Refused, match=rf"answered the webhook with {status} no pe \[31m, never") as error:
        deliver(sink.url)
    assert (error.value.acted, error.value.permanent) == ("no", True)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("status", "kind"),
    [(408, Unavailable), (425, Unavailable), (429, Unavailable)]
    + [(status, OutcomeUnknown) for status in (500, 501, 502, 503, 504, 599, 103, 199, 600)],
)
def test_a_failure_is_tried_again(sink: WebServer, status: int, kind: type[GatewayError]) -> None:
    sink.misbehave(answers(status))
    with pytest.raises(kind, match=f"answered the webhook with {status}") as error:
        deliver(sink.url)
    assert (error.value.permanent, error.value.after) == (False, None)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("999999999", 86400),
        ("9" * 400, 86400),
        ("Thu, 01 Jan 2099 00:00:00 GMT", 86400),
        ("Thursday, 01-Jan-99 00:00:00 GMT", None),
    ],
)
def test_the_receiver_may_say_when_to_come_again_within_reason(
    sink: WebServer, status: int, text: str, seconds: float | None
) -> None:
    sink.misbehave(answers(status, Retry_After=text))
    with pytest.raises((Unavailable, OutcomeUnknown)) as error:
        deliver(sink.url)
    assert error.value.after == seconds


def test_the_receiver_may_say_it_as_a_date(sink: WebServer) -> None:
    moment = datetime.now(UTC) + timedelta(hours=2)
    sink.misbehave(answers(503, Retry_After=format_datetime(moment, usegmt=True)))
    with pytest.raises(OutcomeUnknown) as error:
        deliver(sink.url)
    assert error.value.after is not None
    assert 0 < error.value.after <= 7200


@pytest.mark.parametrize(
    "text", ["0", "-5", "soon", "", "1e9", "nan", "Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 99 Foo 2026"]
)
def test_a_time_to_come_again_that_is_none_leaves_it_to_the_backoff(sink: WebServer, text: str) -> None:
    sink.misbehave(answers(503, Retry_After=text))
    with pytest.raises(OutcomeUnknown) as error:
        deliver(sink.url)
    assert error.value.after is None


@pytest.mark.parametrize(
    "behaviour", [web.leaves_before_answering, web.says_half, web.says_nothing, web.drips_the_head]
)
def test_once_the_request_is_sent_nobody_knows_without_an_answer(sink: WebServer, behaviour: Behaviour) -> None:
    sink.misbehave(behaviour)
    waits = behaviour in {web.says_nothing, web.drips_the_head}
    with pytest.raises(OutcomeUnknown, match="received the request and did not answer") as error:
        deliver(sink.url, gateway(SHORT if waits else LONG))
    assert (error.value.acted, error.value.permanent) == ("maybe", False)


def test_a_success_stays_one_however_its_body_drips(sink: WebServer) -> None:
    sink.misbehave(web.drips_the_body)
    assert deliver(sink.url) == "HTTP 200"


def test_an_error_is_told_though_its_body_never_ends(sink: WebServer) -> None:
    def errs_and_drips(exchange: web.Exchange) -> None:
        exchange.work()
        exchange.send(b"HTTP/1.1 410 Gone\r\nContent-Length: 1000\r\n\r\nno longer here")
        exchange.wait_until_they_hang_up()

    sink.misbehave(errs_and_drips)
    with pytest.raises(Refused, match="with 410 no longer here"):
        deliver(sink.url, gateway(SHORT))


def test_a_request_that_was_not_taken_whole_has_done_nothing(sink: WebServer) -> None:
    sink.misbehave(web.leaves_before_reading)
    with pytest.raises(Unavailable, match="did not receive the whole request") as error:
        # More than all buffers on the way hold.
        deliver(sink.url, payload="x" * 50_000_000)
    assert error.value.acted == "no"


def test_a_receiver_that_is_not_there_gets_another_chance() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port} could not be reached: .*refused") as error:
        deliver(f"http://127.0.0.1:{port}/")
    assert error.value.acted == "no"
    with pytest.raises(Unavailable, match="the webhook's host hooks.invalid cannot be resolved at the moment"):
        deliver("https://hooks.invalid/")


def test_a_server_that_never_finishes_its_handshake_runs_out_of_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(Unavailable, match="timed out"):
            deliver(f"https://127.0.0.1:{port}/", gateway(SHORT))
