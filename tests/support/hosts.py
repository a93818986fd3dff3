"""Hosts on this machine: each has a name, a network of its own, and a cable to the database.

The hosts are Linux namespaces.  Any user may create them, because the creator of a user namespace is root inside it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from subprocess import PIPE, STDOUT

from rowcall.base.child_processes import own_command
from tests.support.silence import Network

IP = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "ip"

# The database's address on the switch, and the first three numbers of the hosts' addresses.
DATABASE, PORT, SUBNET = "10.77.0.254", 5432, "10.77.0"

# Listens in the network in which it runs, and hands the socket to the process that has started it.
LISTEN = """
import socket, sys
listening = socket.create_server((sys.argv[1], int(sys.argv[2])))
socket.send_fds(socket.socket(fileno=int(sys.argv[3])), [b"."], [listening.fileno()])
"""


def inside(pid: int, *namespaces: str) -> list[str]:
    """Return the beginning of a command that runs in these namespaces of a process, with its rights."""
    return ["nsenter", "--target", str(pid), "--user", "--preserve-credentials", *namespaces]


class Host:
    """One host; `cat` keeps its namespaces until the test ends."""

    def __init__(self, name: str, switch: int, number: int) -> None:
        self.name = name
        self._switch = switch
        self._keeper = kept([*inside(switch), "unshare", "--net", "--uts"])
        self._enter = inside(self._keeper.pid, "--net", "--uts")
        self._cable = f"cable{number}"
        on_switch = inside(switch, "--net")
        run(
            [*on_switch, IP, "link", "add", self._cable, "type", "veth", "peer", "eth0", "netns", str(self._keeper.pid)]
        )
        run([*on_switch, IP, "link", "set", self._cable, "master", "switch", "up"])
        run([*self._enter, "hostname", name])
        run([*self._enter, IP, "address", "add", f"{SUBNET}.{number}/24", "dev", "eth0"])
        run([*self._enter, IP, "link", "set", "eth0", "up"])

    def cut_off(self) -> None:
        """Pull the cable: what is sent from now on is lost, and nobody is told."""
        run([*inside(self._switch, "--net"), IP, "link", "set", self._cable, "down"])

    def connect(self) -> None:
        """Plug the cable in again."""
        run([*inside(self._switch, "--net"), IP, "link", "set", self._cable, "up"])

    @contextmanager
    def running(self, environment: Mapping[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run `rowcall` on this host for the block, and kill it at the end."""
        command = [*self._enter, *own_command(*arguments)]
        with subprocess.Popen(command, env=environment, stdout=PIPE, stderr=STDOUT, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def close(self) -> None:
        """Let the namespaces go."""
        self._keeper.communicate()


@contextmanager
def hosts(url: str, *names: str) -> Iterator[tuple[str, list[Host]]]:
    """Yield the URL that this database has on the hosts, and the hosts with these names."""
    with ExitStack() as stack:
        switch = kept(["unshare", "--user", "--map-root-user", "--net"])
        stack.callback(switch.communicate)
        on_switch = inside(switch.pid, "--net")
        run([*on_switch, IP, "link", "add", "switch", "type", "bridge"])
        run([*on_switch, IP, "address", "add", f"{DATABASE}/24", "dev", "switch"])
        run([*on_switch, IP, "link", "set", "switch", "up"])
        network = Network(url, _listening(on_switch))
        stack.callback(network.close)
        made = []
        for number, name in enumerate(names, 1):
            made.append(Host(name, switch.pid, number))
            stack.callback(made[-1].close)
        yield network.url, made


def kept(command: list[str]) -> subprocess.Popen[str]:
    """Start a process that keeps its namespaces until its input is closed; return once it has them."""
    process = subprocess.Popen([*command, "cat"], stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdin
    assert process.stdout
    process.stdin.write("ready\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n", f"{command} works only where user namespaces are allowed"
    return process


def run(command: list[str]) -> None:
    subprocess.run(command, check=True)


def _listening(on_switch: list[str]) -> socket.socket:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [*on_switch, sys.executable, "-c", LISTEN, DATABASE, str(PORT), str(theirs.fileno())]
        subprocess.run(command, pass_fds=[theirs.fileno()], check=True)
        _, [descriptor], _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=descriptor)
