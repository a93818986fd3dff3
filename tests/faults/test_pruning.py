"""Housekeeping by real workers: beside others at work, over hundreds of thousands of runs, and killed at any moment."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowcall.base.database import PgConnection
from rowcall.queue.claims.claim import CLAIM
from rowcall.queue.claims.lanes import Lane
from rowcall.queue.claims.request import ClaimRequest
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.retention.prune import BEGINNING, PAGE, Retention
from rowcall.status import FINAL
from tests.support.gate import Gate, gate
from tests.support.plans import looked_at, plan
from tests.support.processes import rowcall, running, start, wait_until
from tests.support.shop import Shop, kill


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str, tmp_path: Path) -> Shop:
    return Shop({**environment, "ROWCALL_ARCHIVE": str(tmp_path / "archive")}, fresh_url)


@pytest.fixture
def barred(shop: Shop) -> Iterator[Gate]:
    """Yield the gate in the shop's database."""
    with gate(shop.url) as barred:
        yield barred


# Of ten runs, six are succeeded, two dead and two cancelled; every third has a key.
OLD = """
SET LOCAL session_replication_role = replica;
INSERT INTO rowcall.job_runs (
    job_type, payload, result, status, attempts, lease_no, created_at, finished_at, updated_at, idempotency_key
)
SELECT 'shop_pack', '{"order_id": 1}', '{}',
    (ARRAY['dead', 'dead', 'cancelled', 'cancelled', 'succeeded'])[1 + least(number %% 10, 4)], 1, 1,
    moment, moment, moment, CASE WHEN number %% 3 = 0 THEN 'old:' || number END
FROM (SELECT number, now() - interval '200 days' + number * interval '1 second'
    FROM generate_series(1, %(runs)s) AS number) AS old(number, moment)
"""


def prune(shop: Shop, **policy: Any) -> int:
    """Insert a run of prune_runs with this policy, and return its id."""
    whole = {"keep_days": dict.fromkeys(FINAL, 100), "types": {}, "archive": False, "keep_occurrences_days": 90}
    [asked] = shop.sql(
        "INSERT INTO rowcall.job_runs (job_type, payload, queue)"
        " VALUES ('prune_runs', %(policy)s, 'maintenance') RETURNING id",
        policy=json.dumps({**whole, **policy}),
    )
    run_id: int = asked["id"]
    return run_id


def claim_plan(connection: PgConnection) -> list[tuple[str, str | None]]:
    """Return the nodes of the claim's plan, and the index that each node uses."""
    request = ClaimRequest({"noop": 60.0}, 100, ["default"], lanes=[Lane("default", 0)])
    nodes = plan(connection, BY_INDEX + CLAIM, request.parameters("planned"))
    return [(node["Node Type"], node.get("Index Name")) for node in nodes]


def counted(run: dict[str, Any]) -> int:
    """Return how many runs this attempt of prune_runs has looked at so far."""
    looked_at: int = ((run["progress"] or {}).get("saved") or {"counts": {"looked_at": 0}})["counts"]["looked_at"]
    return looked_at


RUNS_BEFORE = 300_000
WITH_KEY = RUNS_BEFORE // 3
WAVE = 500
PAGE_SIZE = 5000

KEYS = """
SELECT status, count(*) AS runs, count(pruned_at) AS bare FROM rowcall.job_runs
WHERE idempotency_key IS NOT NULL GROUP BY 1 ORDER BY 1
"""

# Without lease_no: a worker that stands still for a quarter of a second, as on a busy machine, returns the runs that it
# has not begun, and their next claim has another number.  An expired lease would add an attempt, make the run suspect,
# and be in the history.
OTHERS = """
SELECT job_type, status, attempts, suspect, count(*) FROM rowcall.job_runs
WHERE idempotency_key IS NULL AND job_type <> 'prune_runs' GROUP BY 1, 2, 3, 4 ORDER BY 1
"""


@pytest.mark.timeout(300)
def test_300_000_old_runs_are_pruned_while_a_worker_drains_and_nothing_is_lost(
    shop: Shop, connection: PgConnection
) -> None:
    shop.sql(OLD, runs=RUNS_BEFORE)
    shop.ask_many("shop_pack", [{}], run_at="2100-01-01", created_at="2001-01-01")
    shop.sql("INSERT INTO rowcall.job_runs (job_type, status, finished_at) VALUES ('shop_clock', 'dead', now())")
    keys = shop.sql(KEYS)
    fresh, plans, looked = shop.ask_many("noop", [{}] * WAVE), [claim_plan(connection)], []
    run_id = prune(shop, batch=PAGE_SIZE)
    worker = ("worker", "run", "--queues")
    with running(shop.environment, *worker, "default"), running(shop.environment, *worker, "maintenance"):
        while (pruning := shop.row(run_id))["status"] in ("queued", "running"):
            fresh += shop.ask_many("noop", [{}] * WAVE)
            plans.append(claim_plan(connection))
            looked.append(counted(pruning))
            shop.wait(fresh[-1], "succeeded")
        drained = "SELECT id FROM rowcall.job_runs WHERE id = ANY(%(fresh)s) AND status <> 'succeeded' LIMIT 1"
        wait_until(lambda: not shop.sql(drained, fresh=fresh), "all fresh runs have succeeded")
    plans.append(claim_plan(connection))
    assert any(0 < looked_at < RUNS_BEFORE for looked_at in looked), "there were fresh runs while old ones went"
    assert [other for other in plans if other != plans[0]] == []
    counts = {"looked_at": RUNS_BEFORE + 1, "deleted": RUNS_BEFORE - WITH_KEY, "made_bare": WITH_KEY}
    assert pruning["result"] == {**counts, "archived": 0, "months_dropped": 0, "occurrences": 0}
    assert shop.sql(KEYS) == [{**row, "bare": row["runs"]} for row in keys]
    assert [tuple(row.values()) for row in shop.sql(OTHERS)] == [
        ("noop", "succeeded", 1, 0, len(fresh)),
        ("shop_clock", "dead", 0, 0, 1),
        ("shop_pack", "queued", 0, 0, 1),
    ]
    assert shop.sql("SELECT run_id, outcome FROM rowcall.job_attempts") == []
    # With any number of bare rows, the next walk still reads them a page at a time.
    place = {"after_id": BEGINNING[1], "batch": PAGE_SIZE, "bare": False}
    page = plan(connection, PAGE, {**Retention(dict.fromkeys(FINAL, 100), {}).parameters(), **place})
    assert looked_at(page) == PAGE_SIZE


# Writes to job_runs, counted from a worker's first: the claim, then two for each archived page.
WRITES = (1, 2, 3, 4, 5, 8)
RUNS = 600


def archived(folder: Path) -> Counter[int]:
    """Return how often each run is in the archive."""
    texts = [gzip.decompress(path.read_bytes()) for path in folder.rglob("*.jsonl.gz")]
    return Counter(json.loads(line)["id"] for text in texts for line in text.splitlines())


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out", "undone"])
def test_whichever_of_its_writes_a_worker_is_killed_at_what_is_gone_is_in_the_archive(
    shop: Shop, barred: Gate, tmp_path: Path, carried_out: bool
) -> None:
    shop.sql(OLD, runs=RUNS)
    old = {row["id"] for row in shop.sql("SELECT id FROM rowcall.job_runs")}
    run_id = prune(shop, archive=True, batch=20)
    shop.sql("UPDATE rowcall.job_runs SET max_attempts = 100 WHERE job_type = 'prune_runs'")
    for number in WRITES:
        barred.hold_write(number)
        worker = start(shop.environment, "worker", "once")
        barred.wait()
        kill(worker)
        if carried_out:
            barred.open()
        else:
            barred.turn_away()
        shop.wait_for_the_server()
        shop.expire_leases()
        whole = {row["id"] for row in shop.sql("SELECT id FROM rowcall.job_runs WHERE pruned_at IS NULL")}
        assert old - whole <= set(archived(tmp_path / "archive"))
    assert rowcall(shop.environment, "worker", "once").returncode == 0
    result = shop.row(run_id)["result"]
    assert result == {
        "looked_at": RUNS,
        "deleted": 400,
        "made_bare": 200,
        "archived": RUNS,
        "months_dropped": 0,
        "occurrences": 0,
    }
    # A page that was written again is the same file.
    assert archived(tmp_path / "archive") == Counter(old)
