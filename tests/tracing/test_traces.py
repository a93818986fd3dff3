"""Traces: request, enqueue, attempt and effect are one trace, and a collector that is away holds up nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from tests.api.serving import Server, request, served
from tests.support.processes import rowcall, start, wait_until
from tests.support.servers.web import WebServer, says_nothing, serving
from tests.support.shop import Shop
from tests.tracing.collector import Collector

SERVER, CLIENT, PRODUCER, CONSUMER = 2, 3, 4, 5
CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "whsec_" + "aHVz" * 8


@pytest.fixture
def collector() -> Iterator[Collector]:
    with serving(Collector()) as server:
        yield server


@pytest.fixture
def sink() -> Iterator[WebServer]:
    with serving(WebServer()) as server:
        yield server


@pytest.fixture
def key(fresh_url: str) -> str:
    with database.transaction(fresh_url) as connection:
        return api_keys.create_key(connection, "shop", ["enqueue", "read"], Operator("tests"))


@pytest.fixture
def bare(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """The environment of the example's processes, without a collector."""
    return {
        **environment,
        "DATABASE_URL": fresh_url,
        "ROWCALL_APP": "rowcall_example",
        "ROWCALL_WEBHOOK_SECRET": SECRET,
        "ROWCALL_WEBHOOK_ALLOW_LOOPBACK": "on",
    }


@pytest.fixture
def traced(bare: dict[str, str], collector: Collector) -> dict[str, str]:
    return {**bare, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}


def enqueue(server: Server, key: str, payload: dict[str, object], *headers: str) -> int:
    """Enqueue a webhook over HTTP."""
    body = json.dumps({"job_type": "deliver_webhook", "payload": payload}).encode()
    heard = server.ask(request("POST", "/v1/runs", key, "Content-Type: application/json", *headers, body=body))
    assert heard.status == 202, heard
    found: int = heard.told["id"]
    return found


def webhook(sink: WebServer) -> dict[str, object]:
    return {"event_id": "order-1-paid", "url": f"{sink.url}/hooks", "body": {"order": 1}}


def test_request_enqueue_attempt_and_effect_are_one_trace(
    traced: dict[str, str], collector: Collector, sink: WebServer, key: str, tmp_path: Path
) -> None:
    with served(traced, tmp_path) as server:
        run_id = enqueue(server, key, webhook(sink), f"traceparent: {CALLERS}")
        wait_until(lambda: "POST /v1/runs" in collector.names, "the span of the request")
    assert rowcall(traced, "worker", "once").returncode == 0
    wait_until(lambda: "attempt deliver_webhook" in collector.names, "the span of the attempt")
    asked, sent = collector.named("POST /v1/runs"), collector.named("enqueue deliver_webhook")
    attempt, effect = collector.named("attempt deliver_webhook"), collector.named("effect delivered_webhooks")
    assert {one.trace_id for one in (asked, sent, attempt, effect)} == {CALLERS.split("-")[1]}
    assert asked.parent_id == CALLERS.split("-")[2]
    assert (sent.parent_id, attempt.parent_id, effect.parent_id) == (asked.span_id, sent.span_id, attempt.span_id)
    assert [one.kind for one in (asked, sent, attempt, effect)] == [SERVER, PRODUCER, CONSUMER, CLIENT]
    assert (asked.service, attempt.service) == ("rowcall-api", "rowcall-worker")
    assert asked.attributes["http.response.status_code"] == 202
    assert attempt.attributes["messaging.message.id"] == str(run_id)
    assert effect.attributes["rowcall.performed"] is True
    shown = rowcall(traced, "runs", "show", str(run_id)).stdout
    assert CALLERS.split("-")[1] in shown


def test_a_request_that_waits_is_one_trace(
    traced: dict[str, str], collector: Collector, sink: WebServer, key: str, tmp_path: Path
) -> None:
    name = "GET /v1/runs/<int:run_id>"
    with served(traced, tmp_path) as server:
        run_id = enqueue(server, key, webhook(sink))
        assert server.ask(request("GET", f"/v1/runs/{run_id}?wait=1", key)).status == 200
        wait_until(lambda: collector.names.count(name) == 2, "both spans of the request")
    first, second = (one for one in collector.spans if one.name == name)
    assert (second.trace_id, second.parent_id) == (first.trace_id, first.span_id)


def test_nothing_of_a_payload_or_a_key_is_in_a_trace(
    traced: dict[str, str], collector: Collector, sink: WebServer, key: str, tmp_path: Path
) -> None:
    with served(traced, tmp_path) as server:
        enqueue(server, key, webhook(sink), "Idempotency-Key: order-1-request")
        wait_until(lambda: "POST /v1/runs" in collector.names, "the span of the request")
    rowcall(traced, "worker", "once")
    wait_until(lambda: "attempt deliver_webhook" in collector.names, "the span of the attempt")
    assert not any(secret in str(collector.spans) for secret in ("order-1", key, "/hooks"))


@pytest.mark.parametrize("sent", ["", "00-0-0-01", CALLERS.upper(), CALLERS.replace("00-", "ff-"), f"{CALLERS}-x"])
def test_without_the_extra_a_valid_traceparent_is_kept_and_an_invalid_one_ignored(
    bare: dict[str, str], sink: WebServer, key: str, tmp_path: Path, fresh_url: str, sent: str
) -> None:
    with served(bare, tmp_path) as server:
        first = enqueue(server, key, webhook(sink), f"traceparent: {CALLERS}")
        second = enqueue(server, key, {**webhook(sink), "event_id": "order-2-paid"}, f"traceparent: {sent}")
    with database.transaction(fresh_url) as connection:
        rows = database.fetch_all(connection, "SELECT id, trace_parent FROM rowcall.job_runs ORDER BY id")
    assert {row["id"]: row["trace_parent"] for row in rows} == {first: CALLERS, second: None}


def test_what_a_schedule_enqueues_begins_its_own_trace_and_a_failure_is_marked(
    environment: dict[str, str], fresh_url: str, collector: Collector
) -> None:
    shop = Shop({**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, fresh_url)
    shop.ask_many("shop_pack", [{"ends": "badly"}], max_attempts=1)
    shop.ask_many("shop_isolated_pack", [{}])
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    failed, isolated = collector.named("attempt shop_pack"), collector.named("attempt shop_isolated_pack")
    assert (failed.parent_id, isolated.parent_id) == ("", "")
    assert failed.trace_id != isolated.trace_id
    assert (failed.failed, isolated.failed) == (True, False)


def test_a_run_that_was_enqueued_with_a_traceparent_continues_that_trace(
    environment: dict[str, str], fresh_url: str, collector: Collector
) -> None:
    shop = Shop({**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, fresh_url)
    shop.ask_many("shop_pack", [{"ends": "well"}], trace_parent=CALLERS)
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    attempt = collector.named("attempt shop_pack")
    assert (attempt.trace_id, attempt.parent_id) == tuple(CALLERS.split("-")[1:3])


def test_a_collector_that_is_silent_or_gone_holds_up_neither_runs_nor_the_end_of_a_worker(
    environment: dict[str, str], fresh_url: str, collector: Collector
) -> None:
    collector.misbehave(*[says_nothing] * 100)
    shop = Shop({**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, fresh_url)
    shop.ask_many("shop_pack", [{}] * 20)
    assert "succeeded 20" in rowcall(shop.environment, "worker", "once").stdout
    shop.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
    shop.ask_many("shop_isolated_pack", [{}] * 2)
    worker = start(shop.environment, "worker", "run")
    wait_until(lambda: shop.count("succeeded") == 22, "all runs")
    worker.terminate()
    worker.communicate()
    assert worker.returncode == 0


def test_opentelemetry_is_not_imported_without_a_collector(bare: dict[str, str]) -> None:
    for words in (("worker", "once"), ("runs", "list")):
        for disabled in ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}):
            environment = {**bare, **disabled, "PYTHONVERBOSE": "1"}
            process = start(environment, *words)
            output, _ = process.communicate()
            assert process.returncode == 0
            assert "import 'opentelemetry" not in output


def test_a_collector_that_is_away_is_reported_once_in_the_format_of_the_log(
    environment: dict[str, str], fresh_url: str
) -> None:
    traced = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_BSP_SCHEDULE_DELAY": "20"}
    shop = Shop({**environment, **traced, "ROWCALL_LOG_FORMAT": "json"}, fresh_url)
    shop.ask_many("shop_pack", [{"ends": "well"}] * 3)
    lines = [json.loads(line) for line in rowcall(shop.environment, "worker", "once").stderr.splitlines()]
    problems = [line for line in lines if line["event"] == "tracing problem"]
    assert len(problems) == len({line["module"] for line in problems}) >= 1


def test_a_wrong_setting_of_opentelemetry_is_reported_and_the_worker_goes_on(
    environment: dict[str, str], fresh_url: str, collector: Collector
) -> None:
    traced = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_MAX_QUEUE_SIZE": "10"}
    shop = Shop({**environment, **traced}, fresh_url)
    shop.ask_many("shop_pack", [{"ends": "well"}])
    worker = rowcall(shop.environment, "worker", "once")
    assert worker.returncode == 0, worker.stderr
    assert shop.count("succeeded") == 1
    assert "traces unavailable" in worker.stderr
    assert "OTEL_ variables" in worker.stderr
