"""A home that does not exist becomes a working server."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from rowcall.local_postgres.home import LOG_LIMIT, Home
from rowcall.local_postgres.server import remove
from rowcall.testing.server import superuser_url
from tests.local_postgres.conftest import SOURCES, Open
from tests.local_postgres.processes import ask, eventually, postmaster_of, processes_in

ODD = "a b'c\"d\ne%sü$HOME`f\\"


def test_postgresql_is_here_from_one_source_at_least() -> None:
    assert SOURCES


def test_an_empty_home_becomes_a_server_that_answers(opened: Open, empty: Path, source: str) -> None:
    server = opened(empty, source, options={})

    assert ask(server.url, "SHOW server_version").startswith(server.version)
    assert ask(server.url, "SELECT current_user || '/' || current_database()") == "rowcall/rowcall"
    assert ask(server.url, "SHOW server_encoding") == "UTF8"
    assert ask(server.url, "SHOW fsync") == "on"
    assert ask(server.url, "SELECT inet_server_port()") == server.port
    assert server.source == source
    assert (server.programs / "postgres").exists()
    assert server.log.read_text()


def test_api_and_worker_are_no_superuser_and_own_their_database_alone(opened: Open, empty: Path) -> None:
    server = opened(empty)

    rights = "rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
    assert ask(server.url, f"SELECT {rights} FROM pg_roles WHERE rolname = current_user") is False
    owners = "SELECT string_agg(datname, ',') FROM pg_database WHERE datdba = current_user::regrole"
    assert ask(server.url, owners) == "rowcall"
    assert ask(server.url, "SELECT has_function_privilege('pg_read_file(text)', 'EXECUTE')") is False


def test_the_superuser_has_a_password_of_its_own_that_only_the_servers_user_may_read(opened: Open, empty: Path) -> None:
    server = opened(empty)
    file = Home(empty).superuser_password

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() not in server.url
    assert ask(superuser_url(empty, server.url), "SHOW is_superuser") == "on"


def test_a_teams_unqualified_tables_are_made_in_public_though_our_schema_has_the_users_name(
    opened: Open, home: Path
) -> None:
    server = opened(home)
    ask(server.url, "CREATE SCHEMA rowcall")

    assert (
        ask(
            server.url,
            "CREATE TABLE users (); SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'users'",
        )
        == "public"
    )


def test_a_home_of_odd_characters_below_a_closed_folder_works(opened: Open, tmp_path: Path, source: str) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)

    server = opened(closed / ODD, source)

    assert ask(server.url, "SELECT 1") == 1


def test_data_and_port_are_the_same_after_a_stop(opened: Open, empty: Path, source: str) -> None:
    first = opened(empty, source)
    ask(first.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    first.close()
    eventually(lambda: not processes_in(empty))

    second = opened(empty, source)

    assert second.url == first.url
    assert ask(second.url, "SELECT answer FROM kept") == 42


def test_options_reach_the_server(opened: Open, home: Path) -> None:
    server = opened(home, options={"fsync": "off", "max_connections": "17"})

    assert ask(server.url, "SHOW max_connections") == "17"


def test_the_password_is_in_no_repr_and_in_no_file_that_others_may_read(opened: Open, home: Path) -> None:
    server = opened(home)
    password = Home(home).read_password()

    assert password in server.url
    assert password not in repr(server)
    readable = [
        path
        for path in home.iterdir()
        if path.is_file() and path.stat().st_mode & 0o077 and password in path.read_text()
    ]
    assert not readable
    assert stat.S_IMODE(Home(home).cluster.stat().st_mode) == 0o700


def test_only_the_cluster_is_given_to_the_user_who_runs_the_server(opened: Open, home: Path) -> None:
    before = _owners(home)

    opened(home)

    assert _owners(home) == before
    mine = [path for path in home.rglob("*") if Home(home).cluster not in (path, *path.parents)]
    assert {path.stat().st_uid for path in mine} == {os.geteuid()}
    owner = Home(home).cluster.stat().st_uid
    assert owner == Path(f"/proc/{postmaster_of(home)}").stat().st_uid != 0


def test_a_cluster_folder_that_is_there_is_used_as_its_owner(opened: Open, empty: Path) -> None:
    cluster = Home(empty).cluster
    cluster.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(cluster, pwd.getpwnam("nobody").pw_uid, -1)
    owner = cluster.stat().st_uid

    server = opened(empty)

    assert ask(server.url, "SELECT 1") == 1
    assert cluster.stat().st_uid == owner == Path(f"/proc/{postmaster_of(empty)}").stat().st_uid


def test_a_log_that_grew_long_is_set_aside(opened: Open, home: Path) -> None:
    place = Home(home)
    place.log.touch()
    os.truncate(place.log, LOG_LIMIT + 1)

    opened(home)

    assert place.older_log.stat().st_size == LOG_LIMIT + 1
    assert place.log.stat().st_size < LOG_LIMIT


def _owners(home: Path) -> list[tuple[Path, int, int, int]]:
    found = [(path, path.stat()) for path in (home, *home.parents)]
    return [(path, status.st_mode, status.st_uid, status.st_gid) for path, status in found]


def test_git_ignores_a_new_home_and_a_folder_that_was_in_use_keeps_what_it_has(opened: Open, empty: Path) -> None:
    opened(empty).close()
    assert (empty / ".gitignore").read_text() == "*\n"

    used = empty.parent / "used"
    used.mkdir()
    (used / "code.py").touch()
    opened(used).close()
    remove(used)
    assert [entry.name for entry in used.iterdir()] == ["code.py"]
