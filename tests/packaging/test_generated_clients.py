"""Clients that are generated from /openapi.json compile, and work with a real server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from tests.api.serving import Server, request, served
from tests.packaging.installed import INSTALL_SECONDS, Environment

PYTHON_PACKAGES = ("openapi-python-client==0.29.1", f"ruff=={version('ruff')}", f"mypy=={version('mypy')}")

NODE_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3")

# Enqueues runs, reads one, reads both pages of a list, and reads an error.
PYTHON = """
import os

from client import AuthenticatedClient
from client.api.definitions import put_definition, run_definition_now
from client.api.runs import enqueue_run, get_run, list_runs
from client.models import Definition, Enqueue, PartialRun, PayloadNoop, Problem, Run, RunList, RunStatus, SentDefinition

client = AuthenticatedClient(base_url=os.environ["URL"], token=os.environ["KEY"])

ids = []
for number in range(3):
    body = Enqueue(job_type="noop", payload=PayloadNoop.from_dict({"number": number}), priority=7)
    run = enqueue_run.sync(client=client, body=body, idempotency_key=f"k-{number}")
    assert isinstance(run, Run), run
    ids.append(run.id)

sent = {"job_type": "expire_keys", "payload": {"user_id": 42}}
assert Enqueue.from_dict(sent).to_dict()["payload"] == sent["payload"]

read = get_run.sync(ids[0], client=client)
assert isinstance(read, Run), read
assert (read.status, read.priority, read.payload.to_dict()) == (RunStatus.QUEUED, 7, {"number": 0})

first = list_runs.sync(client=client, limit=2)
assert isinstance(first, RunList) and first.next_ is not None, first
second = list_runs.sync(client=client, limit=2, cursor=first.next_)
assert isinstance(second, RunList) and second.next_ is None, second
assert [run.id for run in [*first.items, *second.items]] == ids[::-1]

refused = enqueue_run.sync(client=client, body=Enqueue(job_type="none"))
assert isinstance(refused, Problem) and refused.status == 422, refused
assert refused.type_ == "urn:rowcall:problem:invalid-input", refused
assert isinstance(refused.errors, list) and refused.errors[0].code == "job-type-unknown", refused

missing = get_run.sync_detailed(999_999, client=client)
assert missing.status_code == 404 and isinstance(missing.parsed, Problem), missing

made = put_definition.sync("nightly", client=client, body=SentDefinition(job_type="noop", schedule="@daily"))
assert isinstance(made, Definition), made
ran = run_definition_now.sync("nightly", client=client)
assert isinstance(ran, PartialRun) and ran.definition == "nightly", ran
print("all as described")
"""

TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { components, operations, paths } from "./api";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1", headers: { Authorization: "Bearer rc_1" } });

export async function follow(): Promise<string> {
  const enqueued = await client.POST("/v1/runs", { body: { job_type: "noop", payload: { user_id: 42 }, priority: 0 } });
  if (enqueued.error) return enqueued.error.type;
  // A replay may have only the id and status, so a client that needs more reads the run.
  const run: components["schemas"]["PartialRun"] = enqueued.data;
  const read = await client.GET("/v1/runs/{run_id}", { params: { path: { run_id: run.id } } });
  if (read.error) return read.error.errors?.[0]?.pointer ?? read.error.title;
  const page = await client.GET("/v1/runs", { params: { query: { status: ["queued"], limit: 2 } } });
  const next: string | null | undefined = page.data?.next;
  return next ?? `${read.data.status} ${page.data?.items.length}`;
}

export type Listed = NonNullable<operations["listRuns"]["parameters"]["query"]>["limit"];
export const most: Listed = 200;
// @ts-expect-error: there is no such status
export const wrong: components["schemas"]["Run"]["status"] = "waiting";
"""

pytestmark = [pytest.mark.network, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def server(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served({"DATABASE_URL": module_url, "PATH": ""}, tmp_path_factory.mktemp("api")) as server:
        yield server


def test_a_python_client_is_generated_without_a_warning_and_does_what_the_interface_says(
    server: Server, module_url: str, tmp_path: Path
) -> None:
    environment = Environment.create(tmp_path / "environment")
    environment.install(*PYTHON_PACKAGES)
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "generated", ["admin"], Operator("tests"))
    url = f"http://127.0.0.1:{server.port}"
    # The generator formats its files with the ruff that it finds.
    variables = {"URL": url, "KEY": key, "PATH": f"{environment.folder}/bin:/usr/bin:/bin"}

    options = ("--meta", "none", "--output-path", "client", "--fail-on-warning")
    made = environment.run(
        "openapi-python-client",
        "generate",
        "--url",
        f"{url}/openapi.json",
        *options,
        variables=variables,
        folder=tmp_path,
    )
    assert made.returncode == 0, made.stdout + made.stderr

    (tmp_path / "smoke.py").write_text(PYTHON)
    checked = environment.run(
        "mypy", "--strict", "--follow-imports=silent", "smoke.py", variables=variables, folder=tmp_path
    )
    assert checked.returncode == 0, checked.stdout
    done = environment.run("python", "smoke.py", variables=variables, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "all as described\n"), done.stderr


@pytest.mark.program("npm")
def test_typescript_accepts_the_generated_types_and_a_client_that_uses_them(server: Server, tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_bytes(server.ask(request("GET", "/openapi.json", "none")).body)
    (tmp_path / "client.ts").write_text(TYPESCRIPT)
    (tmp_path / "package.json").write_text('{"private": true}')
    for command in (
        ["npm", "install", "--no-audit", "--no-fund", "--silent", *NODE_PACKAGES],
        ["node_modules/.bin/openapi-typescript", "openapi.json", "--output", "api.d.ts"],
        [
            "node_modules/.bin/tsc",
            "--noEmit",
            "--strict",
            "--module",
            "nodenext",
            "--skipLibCheck",
            "client.ts",
            "api.d.ts",
        ],
    ):
        program = shutil.which(command[0]) or str(tmp_path / command[0])
        done = subprocess.run(
            [program, *command[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
        assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
