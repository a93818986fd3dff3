"""A real RabbitMQ or Redis on loopback, with its own files and ports, which a test can kill and start again."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kombu.connection import Connection

from tests.support.ports import free_port
from tests.support.processes import living_with, wait_until

# Debian's own script insists on its user rabbitmq, or root.
SCRIPTS = "lib/rabbitmq_server-*/sbin/rabbitmq-server"

LOG_CHARACTERS = 5000


class Broker:
    """A server that takes messages."""

    def __init__(self, url: str, folder: Path, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        self.url = url
        self.log = folder / "broker.log"
        self._folder = folder
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and return when it takes messages."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)
        wait_until(self._answers, "the broker takes connections")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "the broker has ended"
        with self._connection() as connection, suppress(OSError, EOFError, *connection.connection_errors):
            connection.connect()
            return True
        return False

    def kill(self) -> None:
        """Kill it and all that it has started, as a power failure does."""
        assert self._process is not None
        for pid in living_with(str(self._folder)):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        self._process.kill()
        self._process.wait()

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        with Connection(self.url, connect_timeout=5) as connection:  # type: ignore[no-untyped-call]
            yield connection

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """Yield a channel for what Rowcall and Celery would not do."""
        with self._connection() as connection:
            yield connection.default_channel

    def declare(self, queue: str, **arguments: object) -> None:
        """Declare a queue as Celery does."""
        with self.channel() as channel:
            channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)

    def delete(self, queue: str) -> None:
        """Delete a queue with its messages."""
        with self.channel() as channel:
            channel.queue_delete(queue)

    def waiting(self, queue: str) -> int:
        """Return how many messages wait in a queue."""
        with self.channel() as channel:
            counted: int = channel.queue_declare(queue, passive=True).message_count
            return counted

    def take(self, queue: str) -> list[Any]:
        """Take all messages out of a queue, so that nobody else gets them."""
        taken = []
        with self.channel() as channel:
            while (message := channel.basic_get(queue, no_ack=True)) is not None:
                taken.append(message)
        return taken

    def put(self, queue: str, messages: Sequence[Any]) -> None:
        """Put messages into a queue, in this order."""
        with self.channel() as channel:
            for message in messages:
                message.properties.pop("expiration", None)
                channel.basic_publish(message, exchange="", routing_key=queue)


@contextmanager
def rabbitmq() -> Iterator[Broker]:
    """Yield a RabbitMQ that runs, with a node name of its own, and end it after the block."""
    port = free_port()
    [program] = Path("/usr/lib/rabbitmq").glob(SCRIPTS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plugins").write_text("[].")
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": name,
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_NODENAME": f"rowcall{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced"),
            "RABBITMQ_LOG_BASE": name,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            # It serves a few messages; by default, it starts as many threads as the machine has cores.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1",
        }
        with _running(Broker(f"amqp://guest:guest@127.0.0.1:{port}//", folder, [program], environment)) as broker:
            yield broker


@contextmanager
def redis() -> Iterator[Broker]:
    """Yield a Redis that runs and keeps everything in memory, and end it after the block."""
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        options = {"bind": "127.0.0.1", "port": str(port), "dir": name, "save": ""}
        command = ["redis-server", *(word for option, value in options.items() for word in (f"--{option}", value))]
        with _running(Broker(f"redis://127.0.0.1:{port}/0", Path(name), command, {"PATH": "/usr/bin:/bin"})) as broker:
            yield broker


@contextmanager
def _running(broker: Broker) -> Iterator[Broker]:
    try:
        broker.start()
        yield broker
    except BaseException:
        # Shown when the test fails.
        sys.stderr.write(broker.log.read_text(errors="replace")[-LOG_CHARACTERS:])
        raise
    finally:
        broker.kill()
