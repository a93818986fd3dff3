"""Start real processes, wait for them, and find them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from rowcall.base.child_processes import own_command
from tests.support import preloaded

ROOT = Path(__file__).parents[2]
APPS = ROOT / "tests" / "support" / "apps"

# Starts a command as nohup does.
NOHUP = ("/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh")

# Generous: a process that takes longer, even on a busy machine, hangs.
LIMIT_SECONDS = 120.0
# The time between two checks; no test asserts how long something takes.
POLL_SECONDS = 0.02


def rowcall(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `rowcall`, and wait until it ends."""
    if starts_alike(environment):
        return preloaded.run(arguments, environment, LIMIT_SECONDS)
    return subprocess.run(
        own_command(*arguments), env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


def redirected(environment: Mapping[str, str], redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `rowcall` with a shell's redirection."""
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *own_command(*arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


# What a fork can do itself: find the tests' apps, and open its streams, which it does with buffers.
DONE_BY_THE_FORK = ("PYTHONPATH", "PYTHONUNBUFFERED")


def starts_alike(environment: Mapping[str, str]) -> bool:
    """Whether Python would start the same with this environment, except for what a fork can do itself."""
    names = [
        name
        for name in {*environment, *os.environ}
        if name.startswith(("PYTHON", "LD_")) and name not in DONE_BY_THE_FORK
    ]
    path = set(filter(None, environment.get("PYTHONPATH", "").split(":")))
    return path <= {str(APPS), str(ROOT)} and all(environment.get(name) == os.environ.get(name) for name in names)


def start(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Start `rowcall` in a new interpreter without waiting; its output can be read."""
    return subprocess.Popen(
        own_command(*arguments), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def begin(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Like start(), but in a fork, for tests of what the process does and not of how it starts and ends."""
    return preloaded.begin(arguments, environment) if starts_alike(environment) else start(environment, *arguments)


@contextmanager
def running(environment: Mapping[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Begin `rowcall` for the block, and kill it at the end if it still runs."""
    with begin(environment, *arguments) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], event: str) -> None:
    """Read a process's output until it logs this event; fail if it ends before that."""
    assert process.stdout is not None
    for line in process.stdout:
        if f'"{event}"' in line:
            return
    raise AssertionError(f"the process ended without logging {event!r}")


def insist(process: subprocess.Popen[str]) -> None:
    """Send SIGTERM until the process has ended."""

    def ended() -> bool:
        process.terminate()
        return process.poll() is not None

    wait_until(ended, "it ends")


def freeze(process: subprocess.Popen[str]) -> None:
    """Stop it with SIGSTOP, and wait: on a busy machine, some threads go on for a while after the signal."""
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(process.pid) == "T", "the process is stopped")


def state_of(pid: int) -> str | None:
    """Return a process's state letter from /proc, such as T for stopped, or None if there is no such process.

    If the process ends after its file was opened, reading the file fails.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def gone(pid: int) -> bool:
    """Whether there is no such process, or only a zombie."""
    return state_of(pid) in (None, "Z")


def from_a_fork(work: Callable[[], object]) -> str:
    """Run this in a fork of the test process and return its result as text, or "" if it fails."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.write(writes, str(work()).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Return as soon as `holds` returns something true; fail with `what` if it never does."""
    until = time.monotonic() + LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < until, f"waited {LIMIT_SECONDS:g} seconds for this: {what}"
        time.sleep(POLL_SECONDS)


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started, and that are alive."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def ignores(pid: int, number: signal.Signals) -> bool:
    """Whether a process ignores a signal."""
    [mask] = [line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "SigIgn" in line]
    return bool(int(mask, 16) >> (number - 1) & 1)


def living_with(marker: str) -> dict[int, str]:
    """Return the processes that have this text in command line, environment or working folder: pid -> command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            words = command + (entry / "environ").read_bytes() + os.fsencode((entry / "cwd").readlink())
        except OSError:  # it has ended, or belongs to another user
            continue
        if marker.encode() in words and not gone(int(entry.name)):
            found[int(entry.name)] = command.replace(b"\0", b" ").decode()
    return found
