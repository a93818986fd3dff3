"""The dead man's switch: a service is called each minute while the whole works, and not if any part is broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.settings import Settings
from rowcall.job_types import catalogue
from rowcall_worker.runtime.connection import Link, Outage
from rowcall_worker.runtime.scheduler import Scheduler
from tests.support.processes import freeze, rowcall, running, wait_until
from tests.support.servers.web import WebServer, answers, serving
from tests.support.shop import Shop

# A minute later.
LATER = "UPDATE rowcall.pings SET asked_at = asked_at - interval '1 min', finished_at = finished_at - interval '1 min'"

REFUSE_FINISHES = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON rowcall.job_runs FOR EACH ROW
    WHEN (NEW.status = 'succeeded') EXECUTE FUNCTION refuse()
"""


@pytest.fixture
def service() -> Iterator[WebServer]:
    with serving(WebServer()) as server:
        yield server


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str, service: WebServer) -> Shop:
    shop = Shop(environment, fresh_url)
    shop.environment["ROWCALL_PING_URL"] = f"{service.url}/ping/0b5c1f7a"
    return shop


def once(shop: Shop, *options: str) -> str:
    """Run a worker as cron does."""
    worker = rowcall(shop.environment, "worker", "once", *options)
    assert worker.returncode == 0, worker.stderr
    return worker.stderr


def calls(service: WebServer) -> list[str]:
    return [f"{request.method} {request.path.partition('?')[0]}" for request in service.requests]


def pinging(shop: Shop) -> None:
    """Let two pings finish, so that the switch is called each minute."""
    once(shop)
    shop.sql(LATER)
    once(shop)
    shop.sql(LATER)


def test_the_switch_is_called_each_minute_once_a_ping_has_finished(shop: Shop, service: WebServer) -> None:
    once(shop)
    assert calls(service) == []
    for minutes in (1, 2, 3):
        shop.sql(LATER)
        once(shop)
        once(shop)
        assert calls(service) == ["GET /ping/0b5c1f7a"] * minutes
    assert all(request.body == b"" for request in service.requests)


def test_a_worker_that_polls_rarely_looks_for_pings_every_ten_seconds() -> None:
    link = Link("postgresql:///none", "a test", Outage())
    scheduler = Scheduler.of(link, "w", catalogue(), Settings(poll=31.0))
    assert (scheduler.pings.interval.pause, scheduler.watch.interval.pause) == (10, 10)


def test_pings_leave_one_run_behind(shop: Shop) -> None:
    for _ in range(4):
        once(shop)
        shop.sql(LATER)
    [run] = shop.sql("SELECT status, result FROM rowcall.job_runs WHERE job_type = 'call_ping_url'")
    assert (run["status"], run["result"]) == ("succeeded", {"answer": "HTTP 204"})


def test_without_the_setting_nothing_is_enqueued(shop: Shop, service: WebServer) -> None:
    del shop.environment["ROWCALL_PING_URL"]
    pinging(shop)
    assert calls(service) == []
    assert shop.sql("SELECT 1 FROM rowcall.job_runs WHERE job_type = 'call_ping_url'") == []


def test_no_call_if_finishes_are_refused(shop: Shop, service: WebServer) -> None:
    pinging(shop)
    shop.sql(REFUSE_FINISHES)
    shop.sql("UPDATE rowcall.pings SET asked_at = NULL, finished_at = now() - interval '301 s'")
    before = len(service.requests)
    once(shop)
    [run] = shop.sql("SELECT attempts FROM rowcall.job_runs WHERE job_type = 'call_ping_url' AND finished_at IS NULL")
    assert run["attempts"] == 1
    assert len(service.requests) == before


def test_no_call_if_the_tick_is_broken(shop: Shop, service: WebServer) -> None:
    pinging(shop)
    before = len(service.requests)
    shop.sql("ALTER TABLE rowcall.schedule_ticks RENAME COLUMN worker TO who")
    rowcall(shop.environment, "worker", "once")
    assert len(service.requests) == before


def test_no_call_if_no_worker_ticked_for_long_although_runs_are_performed(shop: Shop, service: WebServer) -> None:
    pinging(shop)
    before = len(service.requests)
    # A ping that waited; the locked row keeps the tick from being recorded.
    shop.sql("UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '151 s'")
    with closing(database.connect(shop.url)) as other:
        database.fetch_all(other, "SELECT 1 FROM rowcall.schedule_ticks FOR UPDATE")
        once(shop)
    [run] = shop.sql("SELECT result FROM rowcall.job_runs WHERE job_type = 'call_ping_url'")
    assert run["result"]["answer"].startswith("not called: ")
    assert len(service.requests) == before


def test_no_call_if_the_alerts_are_not_checked(shop: Shop, service: WebServer) -> None:
    shop.environment["ROWCALL_ALERT_WEBHOOKS"] = f"{service.url}/chat"
    pinging(shop)
    before = len(service.requests)
    with closing(database.connect(shop.url)) as other:
        database.fetch_all(other, "LOCK TABLE rowcall.incidents")
        shop.sql("UPDATE rowcall.alert_checks SET checked_at = checked_at - interval '5 min'")
        once(shop)
    [run] = shop.sql("SELECT result FROM rowcall.job_runs WHERE job_type = 'call_ping_url'")
    assert "the alerts were not checked" in run["result"]["answer"]
    assert len(service.requests) == before
    shop.sql(LATER)
    once(shop)
    assert len(service.requests) == before + 1


def test_no_call_by_a_worker_that_hangs(shop: Shop, service: WebServer) -> None:
    pinging(shop)
    with running(shop.environment, "worker", "run") as worker:
        wait_until(lambda: len(service.requests) == 2, "a call of the worker")
        # Frozen before its transaction has ended, it would hold a lock.
        live = "SELECT 1 FROM rowcall.job_runs WHERE job_type = 'call_ping_url' AND finished_at IS NULL"
        wait_until(lambda: not shop.sql(live), "the end of that ping")
        freeze(worker)
        shop.sql(LATER)
        # Another worker, which has no switch, works for a while.
        del shop.environment["ROWCALL_PING_URL"]
        once(shop)
        assert len(service.requests) == 2


def test_no_call_while_no_run_is_claimed(shop: Shop, service: WebServer) -> None:
    pinging(shop)
    before = len(service.requests)
    [stuck] = shop.ask_many("shop_slow", [{}], queue="stuck")
    with running(shop.environment, "worker", "run", "--concurrency", "1"):
        shop.wait_until_begun(stuck)
        shop.sql("DELETE FROM rowcall.job_runs WHERE job_type = 'call_ping_url'")
        shop.sql("UPDATE rowcall.pings SET asked_at = NULL")
        before = len(service.requests)
        wait_until(
            lambda: bool(
                shop.sql("SELECT 1 FROM rowcall.job_runs WHERE job_type = 'call_ping_url' AND status = 'queued'")
            ),
            "a ping that waits",
        )
        assert len(service.requests) == before


def test_a_service_that_fails_is_called_again_and_then_left_in_peace(shop: Shop, service: WebServer) -> None:
    pinging(shop)
    service.misbehave(*[answers(503)] * 5)
    before = len(service.requests)
    output = ""
    for _ in range(5):
        output += once(shop)
        shop.sql("UPDATE rowcall.job_runs SET run_at = now() WHERE job_type = 'call_ping_url' AND status = 'failed'")
    assert len(service.requests) == before + 5
    [run] = shop.sql("SELECT status, result FROM rowcall.job_runs WHERE job_type = 'call_ping_url'")
    assert run["status"] == "succeeded"
    assert run["result"]["answer"].startswith("failed: ")
    assert '"ping failed"' in output
    assert "0b5c1f7a" not in output


def test_a_worker_without_the_setting_leaves_a_ping_to_one_that_has_it(shop: Shop, service: WebServer) -> None:
    pinging(shop)
    before = len(service.requests)
    rowcall(shop.environment, "worker", "once", "--queues", "default")
    url = shop.environment.pop("ROWCALL_PING_URL")
    assert "another may have it" in once(shop)
    shop.sql("UPDATE rowcall.job_runs SET run_at = now() WHERE job_type = 'call_ping_url' AND status = 'failed'")
    shop.environment["ROWCALL_PING_URL"] = url
    once(shop)
    assert len(service.requests) == before + 1


def definition(shop: Shop, url: str, job_type: str = "shop_pack", **payload: str) -> None:
    """Insert a definition with a ping_url."""
    shop.sql(
        "INSERT INTO rowcall.job_definitions"
        " (name, job_type, payload, schedule, next_run_at, ping_url, overlap, max_attempts, updated_at)"
        " VALUES ('nightly', %(type)s, %(payload)s, '0 0 1 1 *', now(), %(url)s, 'allow', 1, now() - interval '1 h')",
        type=job_type,
        payload=json.dumps({"order_id": 1, "ends": "well", **payload}),
        url=url,
    )


def look_again(shop: Shop) -> None:
    """Work until there is no more news of runs."""
    for _ in range(3):
        once(shop)


@pytest.mark.parametrize(("ends", "said"), [("well", "GET /d/1"), ("badly", "GET /d/1/fail")])
def test_the_service_of_a_definition_is_told_once_how_its_run_ended(
    shop: Shop, service: WebServer, ends: str, said: str
) -> None:
    definition(shop, f"{service.url}/d/1", ends=ends)
    look_again(shop)
    assert [call for call in calls(service) if "/d/" in call] == [said]
    left = "SELECT 1 FROM rowcall.job_runs WHERE job_type = 'call_ping_url' AND payload ->> 'event' <> 'alive'"
    assert len(shop.sql(left)) == 1


def test_the_service_of_a_definition_is_told_that_a_run_has_begun_under_the_same_id_as_its_end(
    shop: Shop, service: WebServer, tmp_path: Path
) -> None:
    definition(shop, f"{service.url}/d/1?x=1", "shop_wait", doors=str(tmp_path))
    with running(shop.environment, "worker", "run"):
        wait_until(lambda: "GET /d/1/start" in calls(service), "the beginning")
        [run] = shop.sql("SELECT id FROM rowcall.job_runs WHERE job_type = 'shop_wait'")
        shop.open_door(run["id"])
        wait_until(lambda: "GET /d/1" in calls(service), "the end")
    told = [request.path for request in service.requests if "/d/" in request.path]
    assert [path.partition("&rid=")[0] for path in told] == ["/d/1/start?x=1", "/d/1?x=1"]
    assert len({path.partition("&rid=")[2] for path in told}) == 1


def test_many_workers_tell_a_service_once(shop: Shop, service: WebServer) -> None:
    definition(shop, f"{service.url}/d/1")
    once(shop)
    with running(shop.environment, "worker", "run"), running(shop.environment, "worker", "run"):
        shop.wait_for_workers(2)
        wait_until(lambda: "GET /d/1" in calls(service), "the end")
    look_again(shop)
    assert [call for call in calls(service) if "/d/" in call] == ["GET /d/1"]


def test_a_definition_cannot_call_what_webhooks_must_not_reach(shop: Shop, service: WebServer) -> None:
    with serving(WebServer()) as private:
        definition(shop, f"{private.url}/d/1")
        look_again(shop)
        assert private.requests == []
    [run] = shop.sql(
        "SELECT result FROM rowcall.job_runs WHERE job_type = 'call_ping_url' AND payload ->> 'event' = 'success'"
    )
    assert "must begin with https" in run["result"]["answer"]
