"""docs/kubernetes: the manifests fit the schemas of Kubernetes and KEDA, and what they run and ask works."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import kubernetes_validate
import psycopg2.errors
import pytest
from ruamel.yaml import YAML

from rowcall.base import database, settings
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.workers import Registration, register
from rowcall.status import Status
from tests.support.page import Reader, blocks
from tests.support.plans import looked_at, plan
from tests.support.processes import ROOT, running
from tests.support.roles import role
from tests.support.rows import run_in

FOLDER = ROOT / "docs" / "kubernetes"
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()

MANIFESTS: dict[str, list[dict[str, Any]]] = {
    path.name: list(YAML(typ="safe").load_all(path.read_text())) for path in sorted(FOLDER.glob("*.yaml"))
}
KEDA = MANIFESTS["autoscaling.yaml"]
PODS = {
    name: manifest["spec"]["template"]["spec"]
    for name, manifests in MANIFESTS.items()
    for manifest in manifests
    if manifest["kind"] in ("Deployment", "Job")
}
CONTAINERS = {name: pod["containers"][0] for name, pod in PODS.items()}

# The oldest release that clouds still run, and the newest one whose schema is installed.
RELEASES = ("1.30", kubernetes_validate.latest_version())

KEDA_MODELS = "@kubernetes-models/keda@2.0.0"
INSTALL_SECONDS = 300

# Prints what KEDA's own schema says of each object on standard input.
CHECK = """
import { readFileSync } from "node:fs";
import * as models from "@kubernetes-models/keda/keda.sh/v1alpha1/index";
for (const manifest of JSON.parse(readFileSync(0))) {
    new models[manifest.kind](manifest).validate();
    console.log(manifest.kind);
}
"""


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", PODS)
def test_kubernetes_knows_each_field(name: str, release: str) -> None:
    for manifest in MANIFESTS[name]:
        kubernetes_validate.validate(manifest, release, strict=True)


@pytest.mark.parametrize("release", RELEASES)
def test_kubernetes_knows_each_field_of_the_printed_cron_job(release: str, tmp_path: Path) -> None:
    lines = [line for block in blocks("kubernetes.md", "sh") for line in block.splitlines()]
    [command] = [line for line in lines if "--print-k8s" in line]
    printed = Reader(tmp_path, DATABASE_URL="postgresql://shop@db/shop").type(command.partition(" | ")[0])
    kubernetes_validate.validate(YAML(typ="safe").load(printed), release, strict=True)


@pytest.mark.network
@pytest.mark.program("npm")
def test_keda_knows_each_field(tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    assert npm
    assert node
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    (tmp_path / "check.js").write_text(CHECK)
    install = [npm, "install", "--no-audit", "--no-fund", "--silent", KEDA_MODELS]
    subprocess.run(install, cwd=tmp_path, timeout=INSTALL_SECONDS, check=True)
    wrong = json.loads(json.dumps(KEDA))
    wrong[1]["spec"]["minReplicaCount"] = "one"
    for manifests, code in ((KEDA, 0), (wrong, 1)):
        checked = subprocess.run(
            [node, "check.js"],
            cwd=tmp_path,
            input=json.dumps(manifests),
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        assert checked.returncode == code, checked.stderr
    assert "minReplicaCount" in checked.stderr


def test_the_scaler_scales_the_workers_and_each_secret_is_created() -> None:
    authentication, scaled = KEDA
    [workers] = MANIFESTS["worker.yaml"]
    [secret] = authentication["spec"]["secretTargetRef"]
    [trigger] = scaled["spec"]["triggers"]
    assert scaled["spec"]["scaleTargetRef"] == {"name": workers["metadata"]["name"]}
    assert trigger["authenticationRef"] == {"name": authentication["metadata"]["name"]}
    assert f"secret generic {secret['name']} --from-literal={secret['key']}=" in PAGE
    assert "secret generic rowcall --from-env-file" in PAGE
    assert all(one["envFrom"] == [{"secretRef": {"name": "rowcall"}}] for one in CONTAINERS.values())


def test_each_pod_runs_a_command_with_settings_that_exist() -> None:
    known = {setting.variable for setting in settings.all_settings().values()}
    assert {name: container["args"] for name, container in CONTAINERS.items()} == {
        "api.yaml": ["api"],
        "migrate.yaml": ["migrate"],
        "worker.yaml": ["worker", "run"],
    }
    for container in CONTAINERS.values():
        assert {one["name"] for one in container.get("env", [])} <= known


def test_the_commands_of_the_page_apply_the_files_of_the_folder() -> None:
    applied = {name for block in blocks("kubernetes.md", "sh") for name in re.findall(r"-f (\S+\.yaml)", block)}
    assert applied == MANIFESTS.keys()
    assert {*re.findall(r"\(kubernetes/([\w.]+)\)", PAGE)} == MANIFESTS.keys()


def test_a_service_does_not_change_a_setting_of_a_pod() -> None:
    # Kubernetes would set ROWCALL_API_PORT=tcp://10.96.0.7:80 in pods that start after the Service rowcall-api exists.
    assert all(pod["enableServiceLinks"] is False for pod in PODS.values())


def test_a_stopping_pod_is_given_more_time_than_it_takes() -> None:
    assert PODS["worker.yaml"]["terminationGracePeriodSeconds"] >= settings.read().grace + 30
    pause = CONTAINERS["api.yaml"]["lifecycle"]["preStop"]["exec"]["command"]
    assert PODS["api.yaml"]["terminationGracePeriodSeconds"] >= int(pause[1]) + 15


@pytest.mark.parametrize("name", ["api.yaml", "worker.yaml"])
def test_the_probes_of_a_pod_are_answered(name: str, environment: dict[str, str]) -> None:
    container = CONTAINERS[name]
    probes = {probe["httpGet"]["path"] for kind, probe in container.items() if kind.endswith("Probe")}
    told = {one["name"]: one["value"] for one in container["env"]}
    assert [str(port["containerPort"]) for port in container["ports"]] == [
        value for variable, value in told.items() if variable.endswith("_PORT")
    ]
    free = {variable: "0" for variable in told if variable.endswith("_PORT")}
    with running({**environment, **told, **free}, *container["args"]) as pod:
        assert pod.stdout
        [port] = next(found for line in pod.stdout if (found := re.findall(r"http://0\.0\.0\.0:(\d+)", line)))
        for path in probes:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as response:
                assert response.status == 200


WORKER = Registration("web-1:1", "web-1", 1, "1.0", ["a", "b", "paused", "limited"], ["noop"], 10)
QUERY = KEDA[1]["spec"]["triggers"][0]["metadata"]["query"]

WAITS = {
    "nothing": ([], 0),
    "a due run": ([(Status.QUEUED, "now() - interval '100 seconds'", "'a'")], 100),
    "a due retry": ([(Status.FAILED, "now() - interval '70 seconds'", "'a'")], 70),
    "the oldest of several queues": (
        [
            (Status.QUEUED, "now() - interval '50 seconds'", "'a'"),
            (Status.QUEUED, "now() - interval '200 seconds'", "'b'"),
        ],
        200,
    ),
    "a due run behind a running one": (
        [
            (Status.RUNNING, "now() - interval '500 seconds'", "'a'"),
            (Status.QUEUED, "now() - interval '40 seconds'", "'a'"),
        ],
        40,
    ),
    "a later run": ([(Status.QUEUED, "now() + interval '1 hour'", "'a'")], 0),
    "a run of a paused queue": ([(Status.QUEUED, "now() - interval '100 seconds'", "'paused'")], 0),
    "a run of a limited queue": ([(Status.QUEUED, "now() - interval '100 seconds'", "'limited'")], 0),
    "a run of a queue that no worker serves": ([(Status.QUEUED, "now() - interval '100 seconds'", "'elsewhere'")], 0),
    "a run that has ended": ([(Status.DEAD, "now() - interval '100 seconds'", "'a'")], 0),
}


@pytest.mark.parametrize(("runs", "seconds"), WAITS.values(), ids=WAITS)
def test_the_scaler_asks_how_long_the_oldest_due_run_has_waited(
    connection: PgConnection, runs: list[tuple[Status, str, str]], seconds: float
) -> None:
    fetch_all(connection, "INSERT INTO rowcall.queues (name, paused_at) VALUES ('paused', now())")
    fetch_all(connection, "INSERT INTO rowcall.queues (name, max_running) VALUES ('limited', 1)")
    register(connection, WORKER)
    run_in(connection, Status.QUEUED, run_at="now() - interval '1 day'", job_type="'nobody_serves_it'")
    for status, run_at, queue in runs:
        run_in(connection, status, run_at=run_at, queue=queue)
    assert fetch_value(connection, QUERY) == seconds


def test_the_scalers_role_may_ask_and_nothing_else(fresh_url: str) -> None:
    grants = re.findall("--command '(GRANT .*)'", PAGE)
    assert len(grants) == 2
    with role(fresh_url, "rowcall_scaler") as scaler:
        with database.transaction(fresh_url) as owner:
            for grant in grants:
                fetch_all(owner, grant.replace("rowcall_scaler", scaler.name))
        with closing(database.connect(scaler.url)) as connection:
            assert fetch_value(connection, QUERY) == 0
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                fetch_all(connection, "DELETE FROM rowcall.job_runs")


def test_the_scaler_reads_little_however_many_runs_there_are(connection: PgConnection) -> None:
    insert = "INSERT INTO rowcall.job_runs (job_type, queue, run_at)"
    many = f"{insert} SELECT 'noop', %(queue)s, now() + %(after)s::interval"
    for queue, after in (("a", "1 hour"), ("b", "-1 hour")):
        fetch_all(connection, f"{many} FROM generate_series(1, 2000)", {"queue": queue, "after": after})
    register(connection, WORKER)
    fetch_all(connection, "ANALYZE rowcall.job_runs")
    nodes = plan(connection, f"{BY_INDEX} {QUERY}", {})
    assert looked_at(nodes, "job_runs") <= 6
    # Runs that nobody serves come first, and there are more of them than the query reads.
    fetch_all(
        connection, f"{many} FROM generate_series(1, 2000)".replace("noop", "other"), {"queue": "b", "after": "-1 d"}
    )
    assert looked_at(plan(connection, f"{BY_INDEX} {QUERY}", {}), "job_runs") <= 1100
