"""Three PostgreSQL servers that Patroni keeps alive, with etcd, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ruamel.yaml import YAML

from rowcall.local_postgres import account
from rowcall.local_postgres.programs import find_programs
from tests.support.page import blocks
from tests.support.ports import free_port
from tests.support.processes import wait_until
from tests.support.silence import Network

# As the page tells its readers to set it.  A killed server loses nothing that it has written, so fsync may be off: only
# a machine that loses its power would lose something.
[YAML_OF_THE_PAGE] = blocks("high-availability.md", "yaml")
DCS = YAML(typ="safe").load(YAML_OF_THE_PAGE)["bootstrap"]["dcs"]
DCS["postgresql"]["parameters"] |= {"fsync": "off", "max_connections": 60, "shared_buffers": "16MB"}

LOG_CHARACTERS = 5000

# Where the page's commands find Patroni's configuration, and its settings the archive.
CONFIGURED, BACKUP = "/etc/patroni/patroni.yml", "/backup"


class Node:
    """One server with its Patroni, which reaches etcd through a network of its own."""

    def __init__(self, folder: Path, owner: account.Account, programs: Path, etcd: str, number: int) -> None:
        self.name = f"node{number}"
        self.port, self._rest_port = free_port(), free_port()
        self.etcd = Network(etcd)
        self._folder = folder / self.name
        self._owner = owner
        self._configuration = folder / f"{self.name}.json"
        self._configuration.write_text(json.dumps(self._configured(programs)))
        self._process: subprocess.Popen[bytes] | None = None

    def _configured(self, programs: Path) -> dict[str, Any]:
        here = f"127.0.0.1:{self.port}"
        archiving = json.loads(json.dumps(DCS).replace(BACKUP, str(self._folder.parent / "backup")))
        trusted = [f"{kind} all 127.0.0.1/32 trust" for kind in ("host all", "host replication")]
        return {
            "scope": "shop",
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self._rest_port}", "connect_address": f"127.0.0.1:{self._rest_port}"},
            # As a proxy, because Patroni would otherwise use the address that etcd itself advertises.
            "etcd3": {"proxy": f"http://127.0.0.1:{urlsplit(self.etcd.url).port}"},
            "bootstrap": {"dcs": archiving, "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"auth": "trust"}]},
            "postgresql": {
                "listen": here,
                "connect_address": here,
                "data_dir": str(self._folder),
                "bin_dir": str(programs),
                "pgpass": str(self._folder.with_suffix(".pgpass")),
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "replicator"}},
                "parameters": {"unix_socket_directories": ""},
                "pg_hba": trusted,
            },
        }

    def start(self) -> None:
        """Start Patroni, which starts the server."""
        with self._folder.with_suffix(".log").open("ab") as log:
            self._process = started(["patroni", str(self._configuration)], self._owner, log.fileno())

    def kill(self) -> None:
        """Kill Patroni and the server at once, as a power failure does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((self._folder / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def close(self) -> None:
        """End it for good."""
        self.kill()
        self.etcd.close()

    def is_in(self, state: str) -> bool:
        """Whether Patroni says that this server is in this state, such as primary or sync."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._rest_port}/{state}", timeout=5) as response:
                return bool(response.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False

    def run(self, command: str) -> bool:
        """Run a command of the page here; return whether it succeeded."""
        words = command.replace(CONFIGURED, str(self._configuration)).split()
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode == 0 and "failed" not in done.stdout


class Cluster:
    """The nodes, and the URL under which clients find the leader."""

    def __init__(self, nodes: Sequence[Node], folder: Path, owner: account.Account) -> None:
        self.nodes = nodes
        # For files that PostgreSQL's user must read and write, such as the archive, which is in its folder `backup`.
        self.folder, self.owner = folder, owner
        servers = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        self.url = f"postgresql://postgres@{servers}/postgres?target_session_attrs=read-write"

    def leader(self) -> Node:
        """Return the node that leads, as soon as there is one."""
        return self._first("primary")

    def standby(self) -> Node:
        """Return the synchronous standby, as soon as there is one."""
        return self._first("sync")

    def wait_until_whole(self) -> None:
        """Return when every node leads or follows, and one is synchronous."""
        wait_until(lambda: len(self._in("primary")) + len(self._in("replica")) == len(self.nodes), "all nodes are up")
        if len(self.nodes) > 1:
            wait_until(lambda: self._in("sync"), "a standby is synchronous")

    def _first(self, state: str) -> Node:
        found: list[Node] = []

        def is_found() -> bool:
            found[:] = self._in(state)
            return bool(found)

        wait_until(is_found, f"a node is {state}")
        return found[0]

    def _in(self, state: str) -> list[Node]:
        return [node for node in self.nodes if node.is_in(state)]


@contextmanager
def cluster(source: str, size: int = 3) -> Iterator[Cluster]:
    """Yield a cluster of this many servers that works, and end it after the block."""
    with ExitStack() as stack:
        # Not in pytest's folder, which the user that root runs PostgreSQL as cannot enter.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        owner = account.claim(folder)
        programs = find_programs(source, account=owner).folder
        client, peer = free_port(), free_port()
        with (folder / "etcd.log").open("wb") as log:
            etcd = started(_etcd(folder, client, peer), owner, log.fileno())
        stack.callback(etcd.wait)
        stack.callback(etcd.kill)
        wait_until(lambda: _has_decided(client), "etcd has decided on its version")
        for name in ("backup", "backup/wal"):
            account.claim(folder / name)
        url = f"http://etcd@127.0.0.1:{client}/"
        nodes = [Node(folder, owner, programs, url, number + 1) for number in range(size)]
        made = Cluster(nodes, folder, owner)
        try:
            for node in nodes:
                node.start()
                stack.callback(node.close)
            made.wait_until_whole()
            yield made
        except BaseException:
            for path in sorted(folder.glob("*.log")):  # shown when the test fails
                sys.stderr.write(f"{path.name}:\n{path.read_text(errors='replace')[-LOG_CHARACTERS:]}\n")
            raise


def _has_decided(port: int) -> bool:
    """Whether etcd says which version its cluster has; a Patroni that asks earlier ends with a traceback."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/version", timeout=5) as response:
            return bool(json.load(response)["etcdcluster"] != "not_decided")
    except OSError:
        return False


def _etcd(folder: Path, client: int, peer: int) -> list[str]:
    urls = {"client": f"http://127.0.0.1:{client}", "peer": f"http://127.0.0.1:{peer}"}
    return [
        "etcd",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={urls['client']}",
        f"--advertise-client-urls={urls['client']}",
        f"--listen-peer-urls={urls['peer']}",
        f"--initial-advertise-peer-urls={urls['peer']}",
        f"--initial-cluster=default={urls['peer']}",
    ]


def started(command: list[str], owner: account.Account, log: int) -> subprocess.Popen[bytes]:
    """Start a program as this user, with its output in this file."""
    program = shutil.which(command[0])
    assert program, f"{command[0]} is not installed (Debian: apt-get install patroni etcd-server)"
    return subprocess.Popen(
        [program, *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd="/",
        env=account.ENVIRONMENT,
        user=owner.user,
        group=owner.group,
        extra_groups=owner.groups,
    )
