"""docs/deploy.md: its commands run as they stand, from an empty database to no tables."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from psycopg2.extensions import parse_dsn

from rowcall.base import database
from rowcall.base.database import fetch_value
from rowcall_migrations.grants import as_grants
from rowcall_migrations.script import as_sql
from tests.support.page import Reader, blocks
from tests.support.processes import LIMIT_SECONDS, ROOT, wait_until
from tests.support.roles import role

REMEDY = (
    'If your DATABASE_URL begins with it, write "$(echo "$DATABASE_URL" | sed s/+psycopg2//)"'
    ' in place of "$DATABASE_URL".'
)

START, PRINTED, REMOVE, REMOVE_ROLES = blocks("deploy.md", "sh")


@pytest.fixture
def reader(tmp_path: Path, empty_url: str) -> Reader:
    Reader(tmp_path).type("rowcall new shop")
    return Reader(tmp_path / "shop", empty_url, ROWCALL_APP="shop", ROWCALL_API_PORT="0")


def stopped(reader: Reader, command: str, started: str) -> int:
    """Start this command, which stays, and stop it once it works; return its exit code."""
    process = subprocess.Popen(command.split(), cwd=reader.folder, env=reader.environment, stderr=subprocess.PIPE)
    assert process.stderr is not None
    told = json.loads(process.stderr.readline())
    assert told["event"] == started
    if url := told.get("url"):
        wait_until(partial(answers, f"{url}/healthz"), "the API answers")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT_SECONDS)
    return process.returncode


def answers(url: str) -> bool:
    """Whether a request to this URL gets a response."""
    with suppress(urllib.error.URLError), urllib.request.urlopen(url):  # noqa: S310 - our own API
        return True
    return False


def test_the_commands_start_it_and_remove_it(reader: Reader, empty_url: str) -> None:
    install, environment, migrate, work, serve, examine = (
        line.partition("#")[0].strip() for line in START.splitlines()
    )
    # This environment has what the first line installs, and the fixture's database in place of localhost's.
    assert (install, environment.split()[0]) == ("pip install 'rowcall[worker,api]'", "export")
    assert "shop-weekly-report: new" in reader.type(migrate)
    assert stopped(reader, work, "worker started") == 0
    assert stopped(reader, serve, "api started") == 0
    assert "handlers" in reader.type(f"{examine} || true")
    reader.type(REMOVE)
    with database.transaction(empty_url) as connection:
        assert not fetch_value(connection, "SELECT to_regnamespace('rowcall') IS NOT NULL")


@pytest.fixture
def owners_reader(tmp_path: Path, empty_url: str) -> Iterator[Reader]:
    """Yield a reader whose role has the rights that docs/database.md asks for, and is not a superuser."""
    Reader(tmp_path).type("rowcall new shop")
    with role(empty_url, "owner") as owner:
        with database.transaction(empty_url) as connection:
            rights = f"GRANT CREATE ON DATABASE {parse_dsn(empty_url)['dbname']} TO {owner.name}"
            database.fetch_all(connection, f"ALTER ROLE {owner.name} CREATEROLE; {rights}")
            database.fetch_all(connection, f"GRANT CREATE ON SCHEMA public TO {owner.name}")
        yield Reader(tmp_path / "shop", owner.url, ROWCALL_APP="shop")


def test_the_owner_removes_the_roles_with_their_rights_on_an_apps_own_tables(
    owners_reader: Reader, empty_url: str
) -> None:
    reader = owners_reader
    # Roles belong to the whole server, so other tests must not meet these.
    ours = {f"rowcall_{duty}": f"removed_{duty}" for duty in ("enqueue", "worker", "api")}
    roles = " ".join(f"--role {name.partition('_')[2]}={own}" for name, own in ours.items())
    reader.type(f'rowcall migrate; rowcall migrate --grants {roles} | psql --set ON_ERROR_STOP=1 "$DATABASE_URL"')
    reader.type("psql \"$DATABASE_URL\" --command 'CREATE TABLE orders (); GRANT ALL ON orders TO removed_worker'")
    reader.type(REMOVE)
    reader.type(re.sub("rowcall_(?=enqueue|worker|api)", "removed_", REMOVE_ROLES))
    with database.transaction(empty_url) as connection:
        assert not fetch_value(connection, "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'removed%%'", {})


def texts() -> dict[str, str]:
    """Return the texts that show commands: pages, the changes of each version, and scripts for psql."""
    files = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "docs" / "queries.sql")
    versions = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    return {
        **{file.name: file.read_text() for file in files},
        **{version.splitlines()[0]: version for version in versions},
        "migrate --sql": as_sql(None),
        "migrate --grants": as_grants(()),
    }


def test_where_postgresqls_programs_get_the_url_its_other_form_is_explained() -> None:
    given = {name: text for name, text in texts().items() if re.search(r"(psql|pg_\w+)\b.*\$DATABASE_URL", text)}
    assert {"backup.md", "queries.sql", "migrate --sql", "migrate --grants"} < given.keys()
    for name, text in given.items():
        words = " ".join(text.replace("`", "").replace("\n--", "\n").split())
        assert f"does not accept SQLAlchemy's postgresql+psycopg2://. {REMEDY}" in words, name


@pytest.mark.parametrize("program", ["pg_dump", "psql"])
def test_postgresqls_programs_accept_what_the_remedy_gives_them(program: str, tmp_path: Path, empty_url: str) -> None:
    [written] = re.findall('write (".*") in place of', REMEDY)
    driver = empty_url.replace("postgresql:", "postgresql+psycopg2:", 1)
    folder = Reader(tmp_path, DATABASE_URL=driver)
    folder.type(f'{program} "$DATABASE_URL" < /dev/null', code=1 if program == "pg_dump" else 2)
    folder.type(f"{program} {written} < /dev/null")
    folder.environment["DATABASE_URL"] = empty_url
    folder.type(f"{program} {written} < /dev/null")


def test_each_command_prints_a_configuration_for_this_app(reader: Reader) -> None:
    crontab, systemd, kubernetes = (reader.type(line) for line in PRINTED.splitlines())
    assert "* * * * * " in crontab
    assert "[Timer]" in systemd
    assert "kind: CronJob" in kubernetes
    for printed in (crontab, systemd, kubernetes):
        assert "ROWCALL_APP" in printed


def test_an_apps_own_image_copies_it_to_where_python_looks() -> None:
    [image] = blocks("deploy.md", "dockerfile")
    assert image == "FROM rowcall\nCOPY shop /app/shop\n"
    assert "PYTHONPATH=/app" in (ROOT / "Dockerfile").read_text()
