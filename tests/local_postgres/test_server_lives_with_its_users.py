"""The server runs as long as any process uses it, and no longer."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from rowcall.local_postgres.home import Home
from rowcall.local_postgres.locks import Lock
from tests.local_postgres.conftest import Open
from tests.local_postgres.processes import answers, ask, eventually, processes_in, script, servers_of, user_of

# Opens the server, forks, and lets either the child or the parent stop using it; the other one continues.
FORK = """
import json, os, sys
from pathlib import Path
from rowcall.local_postgres.server import open_server
server = open_server(Path(sys.argv[1]), options={"fsync": "off"})
child = os.fork()
if child == 0 and sys.argv[2] == "child":
    server.close()
    os._exit(0)
if child and sys.argv[2] == "parent":
    os._exit(0)
if child:
    os.waitpid(child, 0)
print(json.dumps({"url": server.url}), flush=True)
sys.stdin.read()
"""


def test_two_processes_share_a_server_that_ends_after_the_last(home: Path) -> None:
    with user_of(home) as first, user_of(home) as second:
        url = first.report()["url"]
        assert second.report()["url"] == url

        first.end()
        assert _used(home)
        assert ask(url, "SELECT 1") == 1

        second.end()
        eventually(lambda: not processes_in(home))
        assert not answers(url)


def test_a_killed_user_leaves_no_server(home: Path) -> None:
    with user_of(home) as user:
        user.report()
        user.kill()

        eventually(lambda: not processes_in(home))


def test_a_server_opened_twice_here_stays_until_both_are_closed(opened: Open, home: Path) -> None:
    first, second = opened(home), opened(home)
    assert first.url == second.url

    first.close()
    first.close()
    assert _used(home)
    assert ask(second.url, "SELECT 1") == 1

    second.close()
    eventually(lambda: not processes_in(home))


def test_a_server_is_given_up_at_the_end_of_its_block(opened: Open, home: Path) -> None:
    with opened(home) as server:
        assert ask(server.url, "SELECT 1") == 1

    eventually(lambda: not processes_in(home))


def test_a_forked_child_that_closes_takes_nothing_from_its_parent(home: Path) -> None:
    with script(FORK, str(home), "child") as parent:
        url = parent.report()["url"]

        assert _used(home)
        assert ask(url, "SELECT 1") == 1


def test_a_forked_child_keeps_the_server_when_its_parent_ends(home: Path) -> None:
    with script(FORK, str(home), "parent") as parent:
        url = parent.report()["url"]

        assert _used(home)
        assert ask(url, "SELECT 1") == 1


def test_eight_processes_at_once_make_and_start_one_server(empty: Path) -> None:
    with ExitStack() as running:
        users = [running.enter_context(user_of(empty)) for _ in range(8)]
        urls = {user.report()["url"] for user in users}

        assert len(urls) == 1
        assert Home(empty).log.read_text().count("LOG:  starting PostgreSQL") == 1


def test_the_server_inherits_only_the_lock_that_says_it_lives(opened: Open, home: Path) -> None:
    with (home / "of the application").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        opened(home)

        for held in servers_of(home).values():
            assert {link for link in held if link.startswith(str(Home(home).locks))} == {str(Home(home).cluster_lock)}
            assert str(home / "of the application") not in held


def _used(home: Path) -> bool:
    """Whether the users' lock is held; otherwise the keeper is about to stop the server."""
    with Lock(Home(home).users_lock) as lock:
        return not lock.try_exclusive()
