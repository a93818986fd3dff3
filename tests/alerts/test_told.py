"""End to end: a real worker finds trouble, and tells a real mail server and a real receiver of webhooks."""

from __future__ import annotations

import json

import pytest

from tests.alerts.checking import LATER
from tests.support.gate import gate
from tests.support.processes import rowcall, running, wait_until
from tests.support.servers.mail import DROP, MailServer
from tests.support.servers.web import WebServer, answers
from tests.support.shop import Shop, kill


@pytest.fixture
def shop(telling: Shop) -> Shop:
    return telling


def doomed_run(shop: Shop) -> int:
    """Enqueue a run whose only attempt will fail."""
    [run_id] = shop.ask_many("shop_pack", [{"ends": "badly"}], max_attempts=1)
    return run_id


def dead_run(shop: Shop) -> int:
    """Return a run that died and that nobody has been told of: its worker had no receivers."""
    run_id = doomed_run(shop)
    silent = {name: value for name, value in shop.environment.items() if not name.startswith("ROWCALL_ALERT_")}
    assert rowcall(silent, "worker", "once").returncode == 0
    return run_id


def once(shop: Shop) -> str:
    """Run a worker as cron does."""
    worker = rowcall(shop.environment, "worker", "once")
    assert worker.returncode == 0, worker.stderr
    return worker.stderr


def later(shop: Shop, past: str) -> None:
    """Move the last check and the open incidents into the past."""
    shop.sql(LATER, past=past)


def subjects(mail: MailServer) -> list[str]:
    return [kept.message["Subject"] for kept in mail.mails]


def test_a_dead_run_is_told_once_and_its_end_once(shop: Shop, mail: MailServer, chat: WebServer) -> None:
    run = dead_run(shop)
    once(shop)
    for _ in range(3):
        later(shop, "31 s")
        once(shop)
    assert subjects(mail) == ["[Rowcall production] 1 run of shop_pack died"]
    [email] = mail.mails
    assert email.recipients == ["ops@example.com"]
    assert f"rowcall runs retry {run}" in email.message.get_content()
    [request] = chat.requests
    assert request.path == "/hooks/a1b2c3d4e5"
    told = json.loads(request.body)
    assert told["type"] == "rowcall.alert"
    assert told["incidents"][0]["details"]["run_ids"] == [run]
    assert told["text"].startswith("[Rowcall production] 1 run of shop_pack died\n\n")
    assert rowcall(shop.environment, "runs", "cancel", str(run)).returncode == 1
    shop.sql('UPDATE rowcall.job_runs SET payload = \'{"order_id": 1, "ends": "well"}\' WHERE id = %(run)s', run=run)
    assert rowcall(shop.environment, "runs", "retry", str(run)).returncode == 0
    later(shop, "6 min")
    once(shop)
    later(shop, "1 h")
    once(shop)
    assert subjects(mail)[1:] == [
        "[Rowcall production] ended: no run of shop_pack that died within the last hour is still dead"
    ]
    assert len(chat.requests) == 2


def test_what_a_mail_server_refuses_for_a_while_is_told_when_it_is_back(shop: Shop, mail: MailServer) -> None:
    mail.misbehave("greeting", DROP)
    dead_run(shop)
    once(shop)
    assert subjects(mail) == []
    mail.plans.clear()
    shop.sql("UPDATE rowcall.job_runs SET run_at = now() WHERE job_type = 'send_incidents' AND status = 'failed'")
    once(shop)
    assert subjects(mail) == ["[Rowcall production] 1 run of shop_pack died"]


def test_a_receiver_that_failed_gets_the_same_message_again_under_the_same_id(shop: Shop, chat: WebServer) -> None:
    chat.misbehave(answers(500))
    dead_run(shop)
    once(shop)
    shop.sql("UPDATE rowcall.job_runs SET run_at = now() WHERE job_type = 'send_incidents' AND status = 'failed'")
    once(shop)
    first, second = chat.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert json.loads(first.body) == json.loads(second.body)


def test_a_worker_without_the_url_of_a_receiver_leaves_the_message_to_one_that_has_it(
    shop: Shop, mail: MailServer, chat: WebServer
) -> None:
    dead_run(shop)
    shop.ask_many("noop", [{}])
    url = shop.environment.pop("ROWCALL_ALERT_WEBHOOKS")
    # The first worker enqueues both messages, and performs none of them.
    environment = {**shop.environment, "ROWCALL_ALERT_WEBHOOKS": url}
    assert rowcall(environment, "worker", "once", "--types", "noop").returncode == 0
    shop.environment["ROWCALL_ALERT_EMAILS"] = "others@example.com"
    assert "this worker has no URL of 127.0.0.1#" in once(shop)
    assert [kept.recipients for kept in mail.mails] == [["ops@example.com"]]
    assert chat.requests == []
    shop.sql("UPDATE rowcall.job_runs SET run_at = now() WHERE job_type = 'send_incidents' AND status = 'failed'")
    assert rowcall(environment, "worker", "once").returncode == 0
    assert len(chat.requests) == 1


def test_the_death_of_the_worker_that_checks_loses_no_alert_and_doubles_none(shop: Shop, mail: MailServer) -> None:
    dead_run(shop)
    once(shop)
    assert len(mail.mails) == 1
    shop.sql("TRUNCATE rowcall.incidents")
    later(shop, "1 min")
    with gate(shop.url) as barred:
        barred.hold_commit("incidents")
        with running(shop.environment, "worker", "run") as worker:
            barred.wait()
            kill(worker)
    shop.wait_for_the_server()
    later(shop, "1 min")
    once(shop)
    later(shop, "1 min")
    once(shop)
    assert len(mail.mails) == 2


def test_alerts_go_on_after_the_database_was_away(shop: Shop, mail: MailServer) -> None:
    with running(shop.environment, "worker", "run"):
        shop.wait_for_workers(1)
        shop.wait(doomed_run(shop), "dead")
        shop.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )
        later(shop, "1 min")
        wait_until(lambda: len(mail.mails) == 1, "the alert")


def test_the_first_worker_after_a_silence_tells_of_it_and_that_it_is_over(shop: Shop, mail: MailServer) -> None:
    rowcall(shop.environment, "definitions", "apply")
    once(shop)
    assert subjects(mail) == []
    shop.sql("UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '10 min'")
    later(shop, "10 min")
    once(shop)
    assert subjects(mail) == ["[Rowcall production] no worker evaluated the schedules"]
    later(shop, "6 min")
    once(shop)
    assert subjects(mail)[1:] == ["[Rowcall production] ended: workers evaluate the schedules again"]


def test_a_test_arrives(shop: Shop, mail: MailServer, chat: WebServer) -> None:
    asked = rowcall(shop.environment, "alerts", "test")
    assert "is a test" in asked.stdout
    once(shop)
    assert [subject.startswith("[Rowcall production] a test, requested by cli:") for subject in subjects(mail)] == [
        True
    ]
    assert len(chat.requests) == 1
    assert asked.stderr == ""
    shop.environment.pop("ROWCALL_SMTP_URL")
    assert "write emails to .rowcall/mail" in rowcall(shop.environment, "alerts", "test").stderr
    del shop.environment["ROWCALL_ALERT_EMAILS"], shop.environment["ROWCALL_ALERT_WEBHOOKS"]
    assert "no receiver of alerts is set here" in rowcall(shop.environment, "alerts", "test").stderr


def test_no_line_of_the_log_shows_the_url_of_a_receiver(shop: Shop, chat: WebServer) -> None:
    chat.misbehave(answers(404, b"no such hook: /hooks/a1b2c3d4e5"))
    dead_run(shop)
    output = once(shop)
    kept = shop.sql(
        "SELECT status, job_runs::text AS run FROM rowcall.job_runs WHERE job_type = 'send_incidents' ORDER BY status"
    )
    assert "404" in output
    assert "404" in str(kept)
    # A refusal may be a mistake of a proxy, so it is tried again.
    assert kept[0]["status"] == "failed"
    assert "a1b2c3d4e5" not in output + str(kept)
