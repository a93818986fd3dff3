"""The output of `rowcall worker once --print-...` fits this installation, and works there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from rowcall import queue
from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall.base.settings import all_settings
from rowcall.local_postgres.server import open_server
from rowcall.status import Status
from rowcall.testing.server import UNSAFE_AND_FAST
from rowcall_migrations.migrate import migrate
from tests.support.processes import APPS, LIMIT_SECONDS, ROOT, living_with, wait_until
from tests.support.rows import row_of, run_in

FORMATS = ("crontab", "systemd", "k8s")

# Every secret setting, and libpq's own secrets.
SECRETS = {
    "DATABASE_URL": "postgresql://me:hush-1@127.0.0.1:1/none",
    "ROWCALL_READ_URL": "postgresql://me:hush-r@127.0.0.1:1/none",
    "ROWCALL_BROKER_URL": "amqp://me:hush-b@127.0.0.1:1//",
    "ROWCALL_SMTP_URL": "smtps://me:hush-2@mail.example.com",
    "ROWCALL_WEBHOOK_SECRET": "whsec_aHVzaC0zaHVzaC0zaHVzaC0zaHVzaC0zaHVzaC0z",
    "ROWCALL_PAYMENT_KEY": "hush-4",
    "ROWCALL_ALERT_WEBHOOKS": "https://chat.example.com/hush-hooks",
    "ROWCALL_PING_URL": "https://hc-ping.com/hush-ping",
    "PGPASSWORD": "hush-5",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that contains the shop, and whose name needs quoting everywhere."""
    folder = tmp_path / "my app's 100% $HOME"
    shutil.copytree(APPS / "shop", folder / "shop")
    return folder


@pytest.fixture
def offline() -> dict[str, str]:
    """Return the environment of a shell without an app, whose DATABASE_URL does not work."""
    without_app = {name: value for name, value in os.environ.items() if name != "ROWCALL_APP"}
    return {**without_app, "DATABASE_URL": SECRETS["DATABASE_URL"]}


def rowcall(
    environment: dict[str, str], *arguments: str, folder: Path = ROOT, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run `rowcall` in this folder, with this interpreter."""
    return subprocess.run(
        [python, *own_command(*arguments)[1:]],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def printed(format_: str, environment: dict[str, str], *options: str, folder: Path = ROOT, **python: str) -> str:
    """Return the output of --print-FORMAT, and assert that it succeeds."""
    done = rowcall(environment, "worker", "once", f"--print-{format_}", *options, folder=folder, **python)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def named_secrets(text: str) -> list[str]:
    """Return the variables that the comment lists as set here."""
    [names] = re.findall(r"^# Add these, which are set here, to that (?:file|Secret): (.*)$", text, re.MULTILINE)
    return str(names).split(", ")


def start_by(text: str) -> None:
    r"""Do what cron does with the table's only line: remove the \ before each %, and run it without an environment."""
    [line] = [line for line in text.splitlines() if not line.startswith("#")]
    shell_command = line.removeprefix("* * * * * ").replace(r"\%", "%")
    subprocess.run(["/usr/bin/env", "-i", "/bin/sh", "-c", shell_command], cwd="/", timeout=LIMIT_SECONDS, check=True)


def container(text: str) -> dict[str, Any]:
    """Return the only container of the printed CronJob."""
    [found] = YAML(typ="safe").load(text)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize("beside", [True, False], ids=["program", "interpreter"])
def test_the_line_for_cron_does_what_is_due_with_nothing_in_its_environment(
    environment: dict[str, str], folder: Path, beside: bool
) -> None:
    # An interpreter without `rowcall` beside it, which imports everything through PYTHONPATH.
    bare = folder / "python"
    bare.symlink_to(sys.executable)
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    packages = [str(ROOT / "shared"), str(ROOT / "worker")]
    environment |= {"ROWCALL_APP": "shop", "PYTHONPATH": os.pathsep.join([*packages, *libraries])}
    environment |= {"ROWCALL_HOME": "home", "ROWCALL_CONCURRENCY": "3"}
    environment |= {"ROWCALL_PAYMENT_KEY": "it's", "ROWCALL_PAYMENT_URL": "https://pay.example.com"}
    text = printed(
        *("crontab", environment, "--queues", "packing,50% 'off'", "--environment-file", "secrets.env"),
        folder=folder,
        python=sys.executable if beside else str(bare),
    )
    file = folder / "secrets.env"
    assert f"chmod 600 {shlex.quote(str(file))}\n" in text
    assert named_secrets(text) == ["DATABASE_URL", "ROWCALL_PAYMENT_KEY"]
    values = {name: environment[name].replace("'", """'"'"'""") for name in named_secrets(text)}
    file.write_text("".join(f"{name}='{value}'\n" for name, value in values.items()))
    file.chmod(0o600)
    with database.transaction(environment["DATABASE_URL"]) as connection:
        columns = {"job_type": "'shop_pack'", "queue": "'packing'", "payload": """'{"order_id": 7, "ends": "well"}'"""}
        run_id = run_in(connection, Status.QUEUED, attempts="0", **columns)["id"]
    start_by(text)
    with database.transaction(environment["DATABASE_URL"]) as connection:
        run = row_of(connection, run_id)
        [worker] = database.fetch_all(connection, "SELECT * FROM rowcall.workers ORDER BY started_at DESC LIMIT 1")
    assert (run["status"], run["result"]) == ("succeeded", {"packed": 7, "attempt": 1})
    assert (worker["concurrency"], worker["queues"]) == (3, ["packing", "50% 'off'"])


def test_without_a_database_url_the_line_for_cron_starts_the_local_server_of_this_home(tmp_path: Path) -> None:
    folder = tmp_path / "100% home"
    folder.mkdir()
    with open_server(folder / ".rowcall", options=UNSAFE_AND_FAST) as server:
        migrate(server.url, lock_timeout=3)
        with database.transaction(server.url) as connection:
            run_id = queue.enqueue(connection, "noop", {}).run_id
    text = printed("crontab", {**os.environ, "PYTHONPATH": str(ROOT)}, folder=folder)
    assert "# No secret is set here, so no environment file is read.\n" in text
    start_by(text)
    with (
        open_server(folder / ".rowcall", options=UNSAFE_AND_FAST) as server,
        database.transaction(server.url) as connection,
    ):
        assert row_of(connection, run_id)["status"] == "succeeded"
    wait_until(lambda: not living_with(str(folder)), "the local server has ended")


def test_a_postgresql_that_only_the_path_leads_to_is_found_by_cron_too(offline: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "postgres").touch(mode=0o755)
    searched = {**offline, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert f" PATH={tmp_path}:" in printed("crontab", {**searched, "DATABASE_URL": ""})
    # This command starts no local server.
    assert "PATH=" not in printed("crontab", searched)


def test_an_installed_app_needs_no_working_folder(offline: dict[str, str], tmp_path: Path) -> None:
    installed = Path(site.getusersitepackages()).relative_to(site.getuserbase())
    shutil.copytree(APPS / "shop", tmp_path / installed / "shop")
    offline |= {"ROWCALL_APP": "shop", "PYTHONUSERBASE": str(tmp_path), "PYTHONPATH": str(tmp_path / installed)}
    assert "WorkingDirectory=" not in printed("systemd", offline)
    found = printed("systemd", {**offline, "PYTHONPATH": str(APPS.relative_to(ROOT))})
    assert f'"PYTHONPATH={APPS}"' in found
    assert f"\nWorkingDirectory={APPS}\n" in found


@pytest.mark.parametrize("format_", ["crontab", "systemd"])
def test_its_comments_fit_a_terminal(offline: dict[str, str], format_: str) -> None:
    comments = [line for line in printed(format_, offline).splitlines() if line.startswith("# ")]
    long = [line for line in comments if len(line) > 100]
    assert all("set here" in line or "sudo touch" in line for line in long), "lists and commands stay on one line"


@pytest.mark.parametrize("format_", FORMATS)
def test_secrets_are_named_and_never_printed(offline: dict[str, str], format_: str) -> None:
    assert SECRETS.keys() - {"PGPASSWORD"} == {known.variable for known in all_settings().values() if known.secret}
    public = {"ROWCALL_MAIL_FROM": "Reports <reports@example.com>", "ROWCALL_PAYMENT_URL": "https://pay.example.com"}
    text = printed(format_, {**offline, **SECRETS, **public})
    assert named_secrets(text) == list(SECRETS)
    assert all(value in text for value in public.values())
    assert not [value for value in (*SECRETS.values(), "hush-", SECRETS["ROWCALL_WEBHOOK_SECRET"][6:]) if value in text]


@pytest.mark.parametrize("format_", FORMATS)
def test_only_what_the_environment_changes_is_printed(offline: dict[str, str], format_: str, tmp_path: Path) -> None:
    offline |= {"ROWCALL_LEASE": "90", "ROWCALL_CONCURRENCY": "10", "ROWCALL_WEBHOOK_ALLOW_LOOPBACK": "on"}
    text = printed(format_, {**offline, "ROWCALL_FILES": "files"}, folder=tmp_path)
    # Folders of this machine mean nothing in a pod: its image has its own.
    here = {} if format_ == "k8s" else {"ROWCALL_HOME": f"{tmp_path}/.rowcall", "ROWCALL_FILES": f"{tmp_path}/files"}
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    given = dict(re.findall(r"\b(ROWCALL_\w+)=([^ \"]+)", "\n".join(lines)))
    if format_ == "k8s":
        given = {variable["name"]: variable["value"] for variable in container(text)["env"]}
    assert given == {**here, "ROWCALL_LEASE": "90", "ROWCALL_WEBHOOK_ALLOW_LOOPBACK": "on"}


@pytest.mark.parametrize("format_", FORMATS)
def test_the_options_beside_it_are_carried_over(offline: dict[str, str], format_: str) -> None:
    options = ["--queues", "mail,default", "--types", "noop", "--concurrency", "2", "--limit", "7"]
    options += ["--max-time", "50", "--grace", "2.5"]
    text = printed(format_, offline, *options)
    if format_ == "k8s":
        assert container(text)["args"] == ["worker", "once", *options]
    else:
        program = shlex.quote(str(Path(sys.executable).with_name("rowcall")))
        assert f"{program} worker once {' '.join(options)}" in text


def test_the_cron_job_is_what_kubernetes_expects(offline: dict[str, str]) -> None:
    text = printed("k8s", offline, "--image", "registry.example.com/shop:7", "--grace", "60.5")
    read = YAML(typ="safe").load(text)
    spec, pod = read["spec"], read["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert (read["apiVersion"], read["kind"], read["metadata"]) == ("batch/v1", "CronJob", {"name": "rowcall"})
    assert (spec["schedule"], spec["concurrencyPolicy"], spec["startingDeadlineSeconds"]) == ("* * * * *", "Allow", 30)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (1, 3)
    assert (spec["jobTemplate"]["spec"]["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert pod["enableServiceLinks"] is False
    assert pod["terminationGracePeriodSeconds"] > 60.5
    assert container(text) == {
        "name": "rowcall",
        "image": "registry.example.com/shop:7",
        "args": ["worker", "once", "--grace", "60.5"],
        "envFrom": [{"secretRef": {"name": "rowcall"}}],
        "env": [],
        "securityContext": {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


@pytest.mark.program("systemd-analyze")
def test_the_units_installed_as_told_are_valid(offline: dict[str, str], folder: Path, tmp_path: Path) -> None:
    text = printed("systemd", {**offline, "ROWCALL_APP": "shop"}, "--queues", "50% 'off' $HOME", folder=folder)
    # Write to a folder other than systemd's.
    [split] = re.findall(r"^#   \| sudo (awk .*)$", text, re.MULTILINE)
    split, text = split.replace(r"\/etc\/systemd\/", r"\/"), text.replace("/etc/systemd/system", str(tmp_path))
    subprocess.run(["/bin/sh", "-c", split], input=text, text=True, check=True)
    service, timer = tmp_path / "rowcall.service", tmp_path / "rowcall.timer"
    verified = subprocess.run(
        ["/usr/bin/systemd-analyze", "verify", "--man=no", "--generators=no", service, timer],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert (verified.returncode, [line for line in verified.stderr.splitlines() if "rowcall" in line]) == (0, [])
    assert (service.read_text().count("ExecStart="), timer.read_text().count("OnCalendar=")) == (1, 1)


def test_systemd_waits_for_the_grace_and_leaves_the_local_server_to_others(offline: dict[str, str]) -> None:
    connected = printed("systemd", {**offline, "ROWCALL_GRACE": "60"})
    local = printed("systemd", {**offline, "DATABASE_URL": ""}, "--grace", "0")
    [grace], [no_grace] = (re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE) for text in (connected, local))
    assert int(grace) > 60 > int(no_grace) > 0
    assert ("KillMode=mixed\n" in connected, "KillMode=process\n" in local) == (True, True)
    assert ("EnvironmentFile=/etc/rowcall.env\n" in connected, "EnvironmentFile=" in local) == (True, False)


@pytest.mark.parametrize(
    ("options", "changed", "code", "complaint"),
    [
        (["--print-crontab", "--print-k8s"], {}, 2, "use --print-crontab or --print-k8s, not both"),
        (["--print-systemd", "--print-k8s"], {}, 2, "use --print-systemd or --print-k8s, not both"),
        (["--environment-file", "/a"], {}, 2, "--environment-file requires --print-crontab or --print-systemd"),
        (["--print-crontab", "--image", "a"], {}, 2, "--image requires --print-k8s"),
        (["--print-crontab"], {"ROWCALL_LEASE": "soon"}, 2, "ROWCALL_LEASE is 'soon' and must be a number"),
        (["--print-crontab", "--types", "nop"], {}, 1, "there is no job type 'nop'; known here: "),
        (["--print-crontab"], {"ROWCALL_APP": "nowhere"}, 1, "there is no module nowhere.job_types"),
        (["--print-systemd", "--grace", "inf"], {}, 1, "--grace is inf"),
        (["--print-k8s"], {"DATABASE_URL": ""}, 1, "a pod needs DATABASE_URL"),
        (["--print-crontab"], {"ROWCALL_FILES": "/a\nb"}, 1, "ROWCALL_FILES is '/a\\nb', which contains a line break"),
        (["--print-crontab", "--queues", "a" * 999], {}, 1, "cron accepts 998: write some of ROWCALL_LEASE into"),
        (["--print-systemd", "--environment-file", "/a "], {}, 1, "--environment-file is '/a ', which "),
        (
            ["--print-systemd"],
            {"ROWCALL_FILES": "/a\x1b"},
            1,
            "ROWCALL_FILES is '/a\\x1b', which contains control characters",
        ),
        (["--print-k8s", "--image", "\udcff"], {}, 1, "--image is '\\udcff', which contains control characters"),
    ],
)
def test_what_cannot_be_printed_is_refused_with_a_sentence(
    offline: dict[str, str], options: list[str], changed: dict[str, str], code: int, complaint: str
) -> None:
    done = rowcall({**offline, "ROWCALL_LEASE": "90", **changed}, "worker", "once", *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
