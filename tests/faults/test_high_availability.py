"""Three servers under Patroni, with synchronous replication: whatever fails, what was acknowledged happens once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from time import sleep

import marshmallow
import psycopg2
import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.errors import DatabaseUnreachable
from rowcall.job_types import JobType
from rowcall_migrations.migrate import migrate
from tests.support.page import blocks
from tests.support.patroni import Cluster, Node, cluster
from tests.support.processes import running, wait_until
from tests.support.shop import Shop

pytestmark = [pytest.mark.timeout(600), *(pytest.mark.program(name) for name in ("patroni", "etcd"))]


class Shipment(marshmallow.Schema):
    """The payload of shop_ship, as the test sends it."""

    order_id = marshmallow.fields.Integer(required=True)
    ends = marshmallow.fields.String(required=True)


SHIP = JobType("shop_ship", schema=Shipment)

WORKERS = 2

[MAINTENANCE] = blocks("high-availability.md", "sh")

# How many orders are acknowledged before something fails, and how many more afterwards.
SOME = 50

SHIPPED = "SELECT order_id, count(*) AS times FROM shipments GROUP BY order_id ORDER BY order_id"
WRITE = "INSERT INTO shipments (order_id) VALUES (0)"


@dataclass
class Orders:
    """Enqueues one order after another from a thread, and repeats each until it is acknowledged."""

    url: str
    acknowledged: list[int] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Enqueue until the end."""
        number = 0
        while not self._stopped.is_set():
            number += 1
            while not self._is_acknowledged(number):
                sleep(0.1)  # before it is repeated, as a web client would
            self.acknowledged.append(number)

    def _is_acknowledged(self, number: int) -> bool:
        try:
            with database.transaction(self.url) as connection:
                queue.enqueue(connection, SHIP, {"order_id": number, "ends": "well"}, key=f"order {number}")
        except (psycopg2.Error, DatabaseUnreachable):
            return False
        return True

    def wait_for_more(self, most: int = SOME) -> None:
        """Return when this many more orders have been acknowledged."""
        enough = len(self.acknowledged) + most
        wait_until(lambda: len(self.acknowledged) >= enough, f"{most} more orders are acknowledged")

    def stop(self) -> None:
        """Let the last order be acknowledged."""
        self._stopped.set()


@contextmanager
def under_load(shop: Shop) -> Iterator[Orders]:
    """Let orders come in and be shipped during the block; afterwards, check that each was shipped once."""
    orders = Orders(shop.url)
    thread = threading.Thread(target=orders.run)
    with ExitStack() as stack:
        for _ in range(WORKERS):
            stack.enter_context(running(shop.environment, "worker", "run"))
        thread.start()
        try:
            orders.wait_for_more()
            yield orders
            orders.wait_for_more()
        finally:
            orders.stop()
            thread.join()
        shop.connect()  # the server that it was connected to may be gone
        shop.wait_for_all(len(orders.acknowledged))
    assert shop.sql(SHIPPED) == [{"order_id": number, "times": 1} for number in orders.acknowledged]
    assert shop.count("succeeded") == len(shop.sql("SELECT FROM rowcall.job_runs")) == len(orders.acknowledged)


def own_url(node: Node) -> str:
    """Return the URL of this server, whether it leads or not."""
    return f"postgresql://postgres@127.0.0.1:{node.port}/postgres"


def refuses_writes(node: Node) -> bool:
    """Whether this server refuses to write to the shop."""
    try:
        with closing(database.connect(own_url(node))) as connection:
            database.fetch_all(connection, WRITE)
            connection.commit()
    except (psycopg2.Error, DatabaseUnreachable):
        return True
    return False


def another_leads(patroni: Cluster, old: Node) -> Callable[[], bool]:
    return lambda: any(node.is_in("primary") for node in patroni.nodes if node is not old)


def the_leader_is_killed(patroni: Cluster, orders: Orders) -> None:
    old = patroni.leader()
    old.kill()
    wait_until(another_leads(patroni, old), "another node leads")
    orders.wait_for_more()
    old.start()
    patroni.wait_until_whole()
    assert refuses_writes(old)


def the_leader_hands_over(patroni: Cluster, orders: Orders) -> None:
    old = patroni.leader()
    look, hand_over = MAINTENANCE.splitlines()
    assert old.run(look)
    wait_until(lambda: old.run(hand_over), "the leader hands over, which it refuses until the standby has caught up")
    wait_until(another_leads(patroni, old), "another node leads")
    orders.wait_for_more()
    patroni.wait_until_whole()
    assert refuses_writes(old)


def the_leader_is_cut_off_from_etcd(patroni: Cluster, orders: Orders) -> None:
    old = patroni.leader()
    with closing(database.connect(own_url(old))) as late:
        late.autocommit = True
        database.fetch_all(late, "SELECT 1")
        old.etcd.flows.clear()
        wait_until(another_leads(patroni, old), "another node leads")
        with pytest.raises(psycopg2.Error):
            database.fetch_all(late, WRITE)
    assert refuses_writes(old)
    orders.wait_for_more()
    old.etcd.flows.set()
    patroni.wait_until_whole()
    assert refuses_writes(old)


def the_synchronous_standby_is_lost(patroni: Cluster, orders: Orders) -> None:
    lost = patroni.standby()
    lost.kill()
    orders.wait_for_more()
    lost.start()
    patroni.wait_until_whole()


def test_what_was_acknowledged_happens_once_whatever_fails(environment: dict[str, str]) -> None:
    with cluster("machine") as patroni:
        migrate(patroni.url, lock_timeout=3)
        with under_load(Shop(environment, patroni.url)) as orders:
            the_leader_is_killed(patroni, orders)
            the_leader_hands_over(patroni, orders)
            the_leader_is_cut_off_from_etcd(patroni, orders)
            the_synchronous_standby_is_lost(patroni, orders)
