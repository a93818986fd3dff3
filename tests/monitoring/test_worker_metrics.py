"""A worker's metrics: what it has done, from its memory, whoever asks and however slowly."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rowcall.base.database import PgConnection, fetch_all
from rowcall_worker.runtime.counts.metrics import ALL
from tests.monitoring.scraping import PROGRAM, promtool, scraped, url_in
from tests.support.processes import rowcall, start, wait_until
from tests.support.shop import Shop


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@contextmanager
def worker_with_metrics(shop: Shop, *options: str) -> Iterator[str]:
    """Yield the URL of the metrics of a worker that has started."""
    worker = start(shop.environment, "worker", "run", "--metrics-port", "0", *options)
    assert worker.stdout is not None
    try:
        line = next(line for line in worker.stdout if "metrics served" in line)
        yield url_in(line)
    finally:
        worker.kill()
        worker.communicate()


def samples(url: str) -> dict[tuple[str, ...], float]:
    """Return name and labels -> value."""
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(scraped(url))
        for sample in family.samples
    }


def test_attempts_and_their_times_are_counted_by_type_and_end(shop: Shop) -> None:
    shop.ask_many("shop_pack", [{}, {}, {"ends": "badly"}], max_attempts=1)
    with worker_with_metrics(shop) as url:
        wait_until(lambda: sum(shop.count(status) for status in ("succeeded", "dead")) == 3, "the runs are done")
        wait_until(lambda: samples(url)["rowcall_worker_runs_in_flight",] == 0, "their ends are counted")
        found = samples(url)
        assert found["rowcall_worker_attempts_total", "succeeded", "shop_pack"] == 2
        assert found["rowcall_worker_attempts_total", "dead", "shop_pack"] == 1
        assert found["rowcall_worker_attempts_total", "failed", "shop_pack"] == 0
        assert found["rowcall_worker_waiting_seconds_count", "shop_pack"] == 3
        assert found["rowcall_worker_running_seconds_bucket", "shop_pack", "+Inf"] == 3
        assert found["rowcall_worker_running_seconds_sum", "shop_pack"] > 0
        assert found["rowcall_worker_slots",] == 10
        assert found["rowcall_worker_database_up",] == 1
        ages = {name[1] for name in found if name[0] == "rowcall_worker_last_success_age_seconds"}
        assert ages == {"producer", "heartbeat", "scheduler"}


def test_the_metrics_are_those_of_the_reference(shop: Shop) -> None:
    shop.ask("noop")
    with worker_with_metrics(shop) as url:
        wait_until(lambda: shop.count("succeeded") == 1, "a run is done")
        families = {line.split()[2] for line in scraped(url).splitlines() if line.startswith("# TYPE")}
    assert families == {metric.name for metric in ALL}


def test_a_lost_database_is_seen_and_the_metrics_go_on(shop: Shop, administration: PgConnection) -> None:
    name = shop.url.rpartition("/")[2].partition("?")[0]
    with worker_with_metrics(shop) as url:
        shop.wait_for_workers(1)
        fetch_all(administration, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %(name)s"
        fetch_all(administration, ended, {"name": name})
        wait_until(lambda: samples(url)["rowcall_worker_database_up",] == 0, "the outage")
        fetch_all(administration, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        wait_until(lambda: samples(url)["rowcall_worker_database_up",] == 1, "its end")


def test_clients_that_send_nothing_keep_nobody_from_the_metrics(shop: Shop) -> None:
    with worker_with_metrics(shop) as url:
        host, port = url.split("/")[2].split(":")
        # Answered one after another, they would take longer than a scrape may.
        idle = [socket.create_connection((host, int(port))) for _ in range(70)]
        idle[0].sendall(b"GET /metrics")
        assert "rowcall_worker_slots" in scraped(url)
        for one in idle:
            one.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("POST", "/metrics", 405), ("HEAD", "/metrics", 200), ("GET", "/metrics?x=1", 200)],
)
def test_only_metrics_are_served(shop: Shop, method: str, path: str, status: int) -> None:
    with worker_with_metrics(shop) as url, closing(http.client.HTTPConnection(url.split("/")[2])) as client:
        client.request(method, path)
        response = client.getresponse()
        assert response.status == status
        assert bool(response.read()) is (method != "HEAD")


def test_a_port_in_use_is_refused_with_the_setting_that_chooses_another(shop: Shop) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        refused = rowcall(shop.environment, "worker", "run", "--metrics-port", port)
    assert refused.returncode == 1
    assert f"the worker's metrics cannot listen on 127.0.0.1:{port}" in refused.stderr
    assert "ROWCALL_WORKER_METRICS_PORT" in refused.stderr
    assert "Traceback" not in refused.stderr


def two_free_ports() -> int:
    """Return the first of two neighbouring ports that nobody listens on."""
    while True:
        with closing(socket.create_server(("127.0.0.1", 0))) as first, suppress(OSError):
            port: int = first.getsockname()[1]
            socket.create_server(("127.0.0.1", port + 1)).close()
            return port


def test_each_of_several_processes_serves_its_own(shop: Shop) -> None:
    first = two_free_ports()
    shop.environment["ROWCALL_WORKER_METRICS_PORT"] = str(first)
    worker = start(shop.environment, "worker", "run", "--processes", "2")
    try:
        shop.wait_for_workers(2)
        urls = [f"http://127.0.0.1:{first + number}/metrics" for number in range(2)]
        workers = {name[-1] for url in urls for name in samples(url) if name[0] == "rowcall_worker_info"}
        assert len(workers) == 2
    finally:
        worker.terminate()
        worker.communicate()


def test_a_worker_that_cron_starts_serves_none(shop: Shop) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        shop.environment["ROWCALL_WORKER_METRICS_PORT"] = str(taken.getsockname()[1])
        assert rowcall(shop.environment, "worker", "once").returncode == 0


@pytest.mark.program(PROGRAM)
def test_promtool_reads_them(shop: Shop) -> None:
    shop.ask_many("shop_pack", [{}, {"ends": "badly"}], max_attempts=1)
    with worker_with_metrics(shop) as url:
        wait_until(lambda: shop.count("dead") == 1, "a run died")
        assert promtool("check", "metrics", text=scraped(url)) == ""
