"""compose.yaml is valid, its services run real commands with real settings, and what its comments say is true."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2.extensions
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from rowcall import queue
from rowcall.base import database, settings
from rowcall.cli import main
from rowcall.status import Status
from rowcall_migrations.migrate import migrate
from tests.support.processes import LIMIT_SECONDS, ROOT, rowcall, start, wait_until

COMPOSE_TEXT = (ROOT / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = YAML(typ="safe").load(COMPOSE_TEXT)
EXAMPLE = (ROOT / ".env.example").read_text()

SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "rowcall"}

# Where the shell and the health check find rowcall and python: here, next to the Python that runs the tests.
PATH = os.pathsep.join((str(Path(sys.executable).parent), os.defpath))


def script_of(service: str) -> str:
    """Return the shell script of a service, as the shell reads it."""
    script: str = OURS[service]["command"][0]
    return script.replace("$$", "$")


def commands_of(service: dict[str, Any]) -> list[list[str]]:
    """Return the rowcall commands of a service: its command, or the calls in its script."""
    if "entrypoint" not in service:
        return [service["command"]]
    return [call.split() for call in re.findall(r"^\s*rowcall (.*?) *&?$", service["command"][0], re.MULTILINE)]


def interpolated(text: str) -> set[str]:
    """Return the variables that compose replaces."""
    return set(re.findall(r"(?<!\$)\$\{(\w+)", text))


def without_env_file(environment: Mapping[str, str]) -> dict[str, str]:
    """Replace variables with their defaults, as compose does without a .env file."""
    return {name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for name, value in environment.items()}


def seconds(duration: str) -> float:
    """Parse a duration as compose writes it."""
    assert duration.endswith("s")
    return float(duration.removesuffix("s"))


def test_the_file_is_valid_by_the_compose_specification() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", ROOT / "compose.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_all_that_makes_rowcall_whole_is_there() -> None:
    assert set(SERVICES) == {"postgres", "migrate", "api", "proxy", "worker", "worker-cron"}


def test_the_image_is_built_by_one_service_and_fetched_by_none() -> None:
    assert [name for name, service in OURS.items() if "build" in service] == ["migrate"]
    policies = {name: service["pull_policy"] for name, service in OURS.items()}
    assert policies == {"migrate": "build", "api": "never", "worker": "never", "worker-cron": "never"}


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one_that_rowcall_has(name: str) -> None:
    commands = commands_of(OURS[name])
    assert commands
    for command in commands:
        # click parses the other options before it shows the help, and refuses unknown ones.
        result = CliRunner().invoke(main.rowcall, [*command, "--help"])
        assert result.exit_code == 0, result.output


def test_every_setting_is_one_that_rowcall_reads() -> None:
    known = {setting.variable for setting in settings.all_settings().values()}
    named = {variable for service in OURS.values() for variable in service["environment"]}
    named |= interpolated(COMPOSE_TEXT)
    named |= set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE, re.MULTILINE))
    assert named - known == {"API_ADDRESS", "POSTGRES_PASSWORD", "PGPASSWORD"}


@pytest.mark.parametrize("name", OURS)
def test_every_setting_has_a_value_that_rowcall_takes(name: str) -> None:
    settings.read(without_env_file(OURS[name]["environment"]))


@pytest.mark.parametrize("name", OURS)
def test_every_process_runs_the_example_unless_an_app_is_named(name: str) -> None:
    environment = OURS[name]["environment"]
    assert environment["ROWCALL_APP"] == "${ROWCALL_APP:-rowcall_example}"
    assert settings.read(without_env_file(environment)).app == "rowcall_example"


def given(name: str) -> set[str]:
    """Return the settings that a service of ours gets, including those from .env."""
    return set(OURS[name]["environment"])


OUTSIDE = {
    "ROWCALL_SMTP_URL",
    "ROWCALL_MAIL_FROM",
    "ROWCALL_WEBHOOK_SECRET",
    "ROWCALL_PAYMENT_URL",
    "ROWCALL_PAYMENT_KEY",
}


def test_each_service_is_given_only_what_it_needs_and_no_whole_file() -> None:
    assert not [name for name, service in SERVICES.items() if "env_file" in service]
    assert given("worker") == given("worker-cron") > OUTSIDE
    assert not (given("api") | given("migrate")) & OUTSIDE
    assert "POSTGRES_PASSWORD" not in set().union(*map(given, OURS))
    assert set(SERVICES["postgres"]["environment"]) == {"POSTGRES_DB", "POSTGRES_PASSWORD"}


def test_every_line_of_the_example_reaches_a_service() -> None:
    assert set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE, re.MULTILINE)) == interpolated(COMPOSE_TEXT)


def test_the_example_names_every_variable_that_compose_fills_in() -> None:
    assert interpolated(COMPOSE_TEXT) <= set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE, re.MULTILINE))


def test_the_password_has_no_default_anywhere() -> None:
    assert re.findall(r"\$\{POSTGRES_PASSWORD(..)", COMPOSE_TEXT) == [":?", ":?"]
    assert re.search(r"^POSTGRES_PASSWORD=$", EXAMPLE, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(set(OURS) - {"migrate"}))
def test_whatever_uses_the_schema_waits_until_the_migration_has_succeeded(name: str) -> None:
    assert OURS[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_the_migration_waits_until_the_database_is_ready() -> None:
    assert OURS["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert "healthcheck" in SERVICES["postgres"]


@pytest.mark.parametrize("name", OURS)
def test_no_service_of_ours_gains_rights_or_writes_anywhere_but_workers_into_their_home(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]  # noqa: S108 - a folder of the container, in its own memory
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"user", "privileged", "cap_add"} & set(service)
    assert service.get("volumes", []) == (["home:/var/lib/rowcall"] if name.startswith("worker") else [])


def test_only_the_proxy_before_the_api_is_published_and_by_default_on_loopback_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"proxy": ["${API_ADDRESS:-127.0.0.1:8000}:80"]}
    assert SERVICES["proxy"]["depends_on"] == {"api": {"condition": "service_healthy"}}


@pytest.mark.parametrize("name", ["worker", "worker-cron"])
def test_a_worker_is_given_more_time_to_stop_than_its_handlers_are(name: str) -> None:
    assert seconds(OURS[name]["stop_grace_period"]) >= settings.Settings().grace + 10


def test_a_password_of_any_characters_reaches_the_database(fresh_url: str) -> None:
    role, password = f"role_{uuid.uuid4().hex[:8]}", "p@ss:w/o?r#d %41 $HOME ü'\""
    server = psycopg2.extensions.parse_dsn(fresh_url)
    ours = OURS["migrate"]["environment"]["DATABASE_URL"]
    url = ours.replace("postgres@postgres:5432/rowcall", f"{role}@{server['host']}:{server['port']}/{server['dbname']}")
    assert url != ours
    with database.transaction(fresh_url) as connection:
        database.fetch_all(
            connection, f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD %(password)s", {"password": password}
        )
    try:
        for command in (["migrate"], ["runs", "list"]):  # one uses SQLAlchemy, the other only psycopg2
            done = rowcall({"DATABASE_URL": url, "PGPASSWORD": password}, *command)
            assert (done.returncode, done.stderr) == (0, "")
    finally:
        with database.transaction(fresh_url) as connection:
            database.fetch_all(connection, f"DROP ROLE {role}")


def healthy(port: int) -> bool:
    """Whether the API's health check passes, with the API on another port."""
    kind, *check = OURS["api"]["healthcheck"]["test"]
    assert kind == "CMD"
    assert ":8000/" in check[-1]
    check[-1] = check[-1].replace(":8000/", f":{port}/")
    done = subprocess.run(check, env={"PATH": PATH}, stderr=subprocess.DEVNULL, timeout=LIMIT_SECONDS, check=False)
    return done.returncode == 0


@contextmanager
def serving(environment: Mapping[str, str]) -> Iterator[int]:
    """Yield the port of an API that runs for the block."""
    with start({**environment, "ROWCALL_API_PORT": "0"}, *OURS["api"]["command"]) as api:
        try:
            assert api.stdout is not None
            yield int(json.loads(api.stdout.readline())["url"].rpartition(":")[2])
        finally:
            api.terminate()
            api.communicate(timeout=LIMIT_SECONDS)


def test_the_api_is_healthy_exactly_as_long_as_it_can_serve(fresh_url: str) -> None:
    with serving({"DATABASE_URL": fresh_url}) as port:
        wait_until(lambda: healthy(port), "the API is healthy")
        migrate(fresh_url, lock_timeout=3, target="base")
        assert not healthy(port)
        migrate(fresh_url, lock_timeout=3)
        assert healthy(port)
    assert not healthy(port)


def test_the_cron_worker_does_what_is_due_and_leaves_nobody_behind_when_it_is_stopped(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        run_id = queue.enqueue(connection, "noop", {}).run_id

    def succeeded() -> bool:
        with database.transaction(fresh_url) as connection:
            return bool(queue.get_run(connection, run_id)["status"] == Status.SUCCEEDED)

    # With init: true, it is the leader of a process group, which is what its signal goes to.
    assert OURS["worker-cron"]["init"] is True
    with subprocess.Popen(
        [*OURS["worker-cron"]["entrypoint"], script_of("worker-cron")],
        env={"PATH": PATH, "PYTHONPATH": str(ROOT), "DATABASE_URL": fresh_url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as loop:
        try:
            wait_until(succeeded, "the run has succeeded")
            loop.terminate()
            assert loop.wait(LIMIT_SECONDS) == 0
            with pytest.raises(ProcessLookupError):
                os.killpg(loop.pid, 0)
        finally:
            if loop.poll() is None:
                os.killpg(loop.pid, signal.SIGKILL)
