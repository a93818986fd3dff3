"""Whatever process is killed, no PostgreSQL remains, no data is lost, and the next start works."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres import leftovers
from rowcall.local_postgres.account import ENVIRONMENT, claim
from rowcall.local_postgres.home import Home
from tests.local_postgres.conftest import Open
from tests.local_postgres.processes import (
    answers,
    ask,
    eventually,
    keeper_of,
    postmaster_of,
    processes_in,
    servers_of,
    user_of,
)


def test_a_killed_keeper_leaves_no_postgres_and_no_data_is_lost(opened: Open, home: Path) -> None:
    first = opened(home)
    ask(first.url, "CREATE TABLE kept AS SELECT 42 AS answer")

    _kill_keeper(home)
    second = opened(home)

    assert second.url == first.url
    assert ask(second.url, "SELECT answer FROM kept") == 42
    _kill_keeper(home)
    eventually(lambda: not servers_of(home))


def test_a_killed_postmaster_is_started_again_at_the_same_address(opened: Open, home: Path) -> None:
    server = opened(home)
    ask(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")

    os.kill(postmaster_of(home), signal.SIGKILL)
    eventually(lambda: not answers(server.url))
    eventually(lambda: answers(server.url))

    assert ask(server.url, "SELECT answer FROM kept") == 42
    assert opened(home).url == server.url


def test_a_server_that_cannot_be_started_again_is_given_up_and_says_why(opened: Open, home: Path) -> None:
    server = opened(home)
    control = Home(home).data / "global" / "pg_control"
    control.rename(control.with_suffix(".away"))

    os.kill(postmaster_of(home), signal.SIGKILL)

    eventually(lambda: set(processes_in(home)) <= {os.getpid()})
    assert "will not be restarted" in server.log.read_text()
    control.with_suffix(".away").rename(control)
    assert ask(opened(home).url, "SELECT 1") == 1


def test_a_keeper_told_to_end_stops_its_server_cleanly(opened: Open, home: Path) -> None:
    server = opened(home)

    os.kill(keeper_of(home), signal.SIGTERM)
    eventually(lambda: set(processes_in(home)) <= {os.getpid()})

    assert "database system is shut down" in server.log.read_text()
    assert ask(opened(home).url, "SELECT 1") == 1


def test_a_starter_killed_while_it_makes_the_cluster_does_not_spoil_the_next(opened: Open, empty: Path) -> None:
    with user_of(empty) as starter:
        eventually((Home(empty).draft / "PG_VERSION").exists)
        starter.kill()

        assert ask(opened(empty).url, "SELECT 1") == 1
    assert not Home(empty).draft.exists()


def test_a_cluster_left_half_made_is_made_anew(opened: Open, empty: Path) -> None:
    (Home(empty).draft / "base").mkdir(parents=True)
    (Home(empty).draft / "PG_VERSION").write_text("15\n")

    assert ask(opened(empty).url, "SELECT 1") == 1
    assert not Home(empty).draft.exists()


@pytest.mark.parametrize("whose", ["init", "tests", "nobody"])
def test_the_number_of_a_dead_postmaster_may_belong_to_anybody(opened: Open, home: Path, whose: str) -> None:
    number = {"init": 1, "tests": os.getpid(), "nobody": 2**22 + 1}[whose]
    (Home(home).data / "postmaster.pid").write_text(f"{number}\n{Home(home).data}\n1\n5432\n\n127.0.0.1\n\nready\n")

    assert ask(opened(home).url, "SELECT 1") == 1


def test_what_does_not_heed_its_keepers_death_is_killed(
    opened: Open, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(home)
    postmaster = postmaster_of(home)
    os.kill(postmaster, signal.SIGSTOP)
    _kill_keeper(home)
    assert postmaster in servers_of(home)

    monkeypatch.setattr(leftovers, "PATIENCE", ((signal.SIGQUIT, 0.1), (signal.SIGKILL, 0.1)))
    leftovers.wait_out(Home(home)).close()

    assert not servers_of(home)


def test_a_postgres_started_by_hand_is_neither_killed_nor_disturbed(opened: Open, home: Path) -> None:
    server = opened(home)
    server.close()
    eventually(lambda: not processes_in(home))
    account = claim(Home(home).cluster)
    with Home(home).doorway() as doorway, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        settings = ["-c", f"port={port}", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        by_hand = subprocess.Popen(
            [str(server.programs / "postgres"), "-D", f"{doorway.path}/data", *settings],
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=ENVIRONMENT,
            pass_fds=doorway.descriptors,
            user=account.user,
            group=account.group,
            extra_groups=account.groups,
        )
    try:
        url = server.url.replace(f":{server.port}/", f":{port}/")
        eventually(lambda: answers(url))

        with pytest.raises(LocalPostgresError, match=f"process {by_hand.pid}.*stop it first"):
            opened(home)

        assert ask(url, "SELECT 1") == 1
    finally:
        by_hand.send_signal(signal.SIGINT)
        by_hand.wait()


def _kill_keeper(home: Path) -> None:
    keeper = keeper_of(home)
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: keeper not in processes_in(home))
