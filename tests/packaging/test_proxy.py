"""The proxy in front of the API: a real nginx, with the configuration of compose.yaml and docs/api-server.md."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall_api.app import BODY_BYTES
from tests.api.conftest import PROBLEM
from tests.api.serving import JSON, Server, heard, request, send, served
from tests.conftest import PROGRAM_PATH
from tests.packaging.test_compose import COMPOSE
from tests.support.processes import ROOT, wait_until

PAGE = (ROOT / "docs" / "api-server.md").read_text()

CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {site}
}}
"""

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"


def site() -> str:
    """Return compose.yaml's configuration for nginx, as nginx reads it."""
    content: str = COMPOSE["configs"]["proxy"]["content"]
    return content.replace("$$", "$")


@pytest.fixture(scope="module")
def proxied(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield the proxy, with an API behind it."""
    folder = tmp_path_factory.mktemp("proxy")
    nginx = shutil.which("nginx", path=PROGRAM_PATH)
    assert nginx
    with served({"DATABASE_URL": module_url, "PATH": ""}, folder, ROWCALL_API_WORKERS="1") as api:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        here = site().replace("listen 80;", f"listen 127.0.0.1:{port};").replace("api:8000", f"127.0.0.1:{api.port}")
        (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, site=here))
        command = [nginx, "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                proxy = replace(api, port=port)
                wait_until(lambda: process.poll() is not None or not proxy.refuses(), "nginx listens")
                yield proxy
            finally:
                process.kill()


@pytest.fixture(scope="module")
def key(module_url: str) -> str:
    with database.transaction(module_url) as connection:
        return api_keys.create_key(connection, "proxy", ["enqueue", "read"], Operator("tests"))


def test_the_page_shows_what_compose_gives_to_nginx() -> None:
    [shown] = re.findall(r"```nginx\n(.*?)```", PAGE, re.DOTALL)
    told = re.sub(r" +#.*", "", shown).replace("http://127.0.0.1:8000", "$api")
    given = re.sub(r" +(resolver|set) .*\n", "", site())
    assert told == given


@pytest.mark.program("nginx")
def test_clients_that_drip_reach_the_proxy_alone(proxied: Server) -> None:
    with ExitStack() as clients:
        for beginning in (b"", b"GET /heal", request("POST", "/v1/runs", "", JSON, "Content-Length: 9")) * 20:
            send(clients.enter_context(proxied.connect()), beginning)
        assert proxied.ask(HEALTH).status == 200


@pytest.mark.program("nginx")
def test_what_the_proxy_hands_on_is_answered_as_without_it(proxied: Server, key: str) -> None:
    noop = b'{"job_type": "noop"}'
    for padding, status, form in (
        (b"", 202, "application/json"),
        (b" " * (BODY_BYTES - len(noop)), 202, "application/json"),
        (b" " * BODY_BYTES, 413, PROBLEM),
    ):
        answer = proxied.ask(request("POST", "/v1/runs", key, JSON, body=noop + padding))
        assert (answer.status, answer.headers["Content-Type"]) == (status, form)
    with proxied.connect() as client:
        for _ in range(3):
            send(client, HEALTH)
            assert heard(client).status == 200
