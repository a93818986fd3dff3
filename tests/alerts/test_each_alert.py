"""Each alert, end to end: a worker finds it, tells both receivers once, and tells them once that it is over."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from rowcall.alerts import Alert
from rowcall.base import database
from rowcall.base.database import fetch_all
from tests.alerts.checking import LATER
from tests.support.processes import LIMIT_SECONDS, rowcall
from tests.support.servers.mail import MailServer
from tests.support.servers.web import WebServer
from tests.support.shop import Shop

# A worker to which any transaction is old: nobody can wait for an hour.
IMPATIENT = """
from datetime import timedelta; from rowcall.queue import vacuum; from rowcall.cli.main import main
vacuum.holding_back.__defaults__ = (timedelta(0), vacuum.OLD_XIDS); main()
"""

Trouble = Callable[[Shop], Iterator[None]]


def run_died(shop: Shop) -> Iterator[None]:
    [run] = shop.ask_many("shop_pack", [{"ends": "badly"}], max_attempts=1)
    rowcall(shop.environment, "worker", "once")
    yield
    shop.sql('UPDATE rowcall.job_runs SET payload = payload || \'{"ends": "well"}\' WHERE id = %(run)s', run=run)
    assert rowcall(shop.environment, "runs", "retry", str(run)).returncode == 0


def run_overdue(shop: Shop) -> Iterator[None]:
    assert rowcall(shop.environment, "queues", "pause", "packing").returncode == 0
    shop.ask_many("shop_pack", [{}], queue="packing", run_at="now")
    shop.sql("UPDATE rowcall.job_runs SET run_at = now() - interval '16 min'")
    yield
    assert rowcall(shop.environment, "queues", "resume", "packing").returncode == 0


def type_unserved(shop: Shop) -> Iterator[None]:
    [run] = shop.ask_many("letter", [{}])
    shop.sql("UPDATE rowcall.job_runs SET run_at = now() - interval '3 min'")
    yield
    assert rowcall(shop.environment, "runs", "cancel", str(run)).returncode == 0


def attempts_failing(shop: Shop) -> Iterator[None]:
    shop.ask_many("shop_pack", [{"ends": "badly"}] * 10, max_attempts=2)
    rowcall(shop.environment, "worker", "once")
    yield
    shop.ask_many("shop_pack", [{}] * 50)


def effect_unknown(shop: Shop) -> Iterator[None]:
    [run] = shop.ask_many("noop", [{}])
    shop.sql(
        "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, state, content_hash, refusal)"
        " VALUES ('welcome:1', %(run)s, 1, 'unknown', repeat('0', 64), 'no answer')",
        run=run,
    )
    yield
    resolved = rowcall(
        shop.environment, "effects", "resolve", "sent_emails", "1", "--happened", "--reference", "250 ok"
    )
    assert resolved.returncode == 0, resolved.stderr


def tick_silent(shop: Shop) -> Iterator[None]:
    assert rowcall(shop.environment, "definitions", "apply").returncode == 0
    rowcall(shop.environment, "worker", "once")
    shop.sql("UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '10 min'")
    yield


def table_bloated(shop: Shop) -> Iterator[None]:
    shop.sql("ALTER TABLE rowcall.run_logs SET (autovacuum_enabled = false)")
    shop.sql("INSERT INTO rowcall.run_logs SELECT 1, n, 1, n, now(), 'info', '' FROM generate_series(1, 50001) AS n")
    shop.sql("DELETE FROM rowcall.run_logs; SELECT pg_stat_force_next_flush()")
    shop.sql("SELECT 1")
    yield
    shop.sql("VACUUM rowcall.run_logs")


def vacuum_held_back(shop: Shop) -> Iterator[None]:
    with closing(database.connect(shop.url)) as holder:
        fetch_all(holder, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        fetch_all(holder, "SELECT 1")
        yield


TROUBLES: dict[Alert, Trouble] = {
    Alert(trouble.__name__): trouble
    for trouble in (
        run_died,
        run_overdue,
        type_unserved,
        attempts_failing,
        effect_unknown,
        tick_silent,
        table_bloated,
        vacuum_held_back,
    )
}


def check(shop: Shop, alert: Alert) -> None:
    """Let a worker check, and another one send what is enqueued."""
    shop.sql(LATER, past="31 s")
    if alert is Alert.VACUUM_HELD_BACK:
        command = [sys.executable, "-c", IMPATIENT, "worker", "once"]
        subprocess.run(command, env=shop.environment, timeout=LIMIT_SECONDS, check=True, capture_output=True)
    else:
        assert rowcall(shop.environment, "worker", "once").returncode == 0


def told(mail: MailServer, chat: WebServer, alert: Alert) -> list[tuple[int, str]]:
    """Return number and state of the messages about this alert, as both receivers have them."""
    by_chat = [
        one for request in chat.requests for one in json.loads(request.body)["incidents"] if one["alert"] == alert
    ]
    by_mail = [kept.message.get_content() for kept in mail.mails]
    assert all(any(one["title"] in text for text in by_mail) for one in by_chat)
    return [(one["id"], one["state"]) for one in by_chat]


def test_each_alert_is_tried_here() -> None:
    assert {*TROUBLES} == {*Alert} - {Alert.TEST}


@pytest.mark.parametrize("alert", TROUBLES)
def test_it_is_told_once_and_once_that_it_is_over(
    telling: Shop, mail: MailServer, chat: WebServer, alert: Alert
) -> None:
    rowcall(telling.environment, "worker", "once")
    with contextmanager(TROUBLES[alert])(telling):
        check(telling, alert)
        check(telling, alert)
        assert [state for _, state in told(mail, chat, alert)] == ["opened"]
    check(telling, alert)
    telling.sql(LATER, past="6 min")
    check(telling, alert)
    check(telling, alert)
    [(opened, _), (ended, state)] = told(mail, chat, alert)
    assert (ended, state) == (opened, "ended")
