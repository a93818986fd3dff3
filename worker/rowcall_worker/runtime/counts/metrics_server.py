"""Serves a worker's metrics on a separate port: one small request per connection, and a thread for each client.

Python's own HTTP server would wait for a slow client as long as the client sends a byte now and then.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rowcall.base.clock import elapsed
from rowcall.base.listeners import listen, url_of
from rowcall.base.logs import LogEvent, log
from rowcall_worker.runtime.counts.metrics import CONTENT_TYPE

# Prometheus' own limit for a scrape is 10 seconds.
REQUEST_SECONDS = 2.0
REQUEST_BYTES = 8192
# How long the thread waits for a client before it checks whether it should end.
STEP_SECONDS = 0.5

# Further clients wait until one of these has been answered or has used up its time.
CLIENTS_MOST = 32

PATH = "/metrics"


@contextmanager
def serving(host: str, port: int, rendered: Callable[[], bytes]) -> Iterator[str]:
    """Serve the metrics during the block; yield their URL."""
    remedy = "choose another with --metrics-port or ROWCALL_WORKER_METRICS_PORT (0 picks a free port)"
    listener = listen(host, port, "the worker's metrics", remedy)
    listener.settimeout(STEP_SECONDS)
    stopped = threading.Event()
    thread = threading.Thread(target=_serve, args=(listener, stopped, rendered), name="metrics", daemon=True)
    thread.start()
    url = f"{url_of(listener, host)}{PATH}"
    log().info(LogEvent.METRICS_SERVED, url=url)
    try:
        yield url
    finally:
        stopped.set()
        thread.join(STEP_SECONDS)
        listener.close()


def _serve(listener: socket.socket, stopped: threading.Event, rendered: Callable[[], bytes]) -> None:
    """Answer clients, until the worker ends."""
    places = threading.BoundedSemaphore(CLIENTS_MOST)
    while not stopped.is_set():
        try:
            client, _ = listener.accept()
        except TimeoutError:
            continue
        except OSError:
            # Too many open files, for example: a worker without metrics is better than no worker.
            stopped.wait(STEP_SECONDS)
            continue
        places.acquire()
        attendant = threading.Thread(
            target=_attend, args=(client, rendered, places), name="metrics client", daemon=True
        )
        try:
            attendant.start()
        except RuntimeError:
            # No more threads can be started, so this client gets no metrics.
            client.close()
            places.release()


def _attend(client: socket.socket, rendered: Callable[[], bytes], places: threading.BoundedSemaphore) -> None:
    try:
        with client, suppress(OSError):
            _answer(client, rendered)
    finally:
        places.release()


def _answer(client: socket.socket, rendered: Callable[[], bytes]) -> None:
    request = _request(client)
    method, _, rest = request.partition(" ")
    path = rest.split(" ")[0].partition("?")[0]
    if method not in {"GET", "HEAD"}:
        status, body = "405 Method Not Allowed", b"only GET and HEAD\n"
    elif path != PATH:
        status, body = "404 Not Found", f"the metrics are at {PATH}\n".encode()
    else:
        status, body = "200 OK", rendered()
    kind = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    client.settimeout(REQUEST_SECONDS)
    client.sendall(f"{head}\r\n".encode() + (b"" if method == "HEAD" else body))


def _request(client: socket.socket) -> str:
    """Return the request's first line, once its head has arrived; raise TimeoutError if that takes too long."""
    until, head = elapsed() + REQUEST_SECONDS, b""
    while b"\r\n\r\n" not in head and len(head) < REQUEST_BYTES:
        left = until - elapsed()
        if left <= 0:
            raise TimeoutError
        client.settimeout(left)
        more = client.recv(REQUEST_BYTES)
        if not more:
            break
        head += more
    return head.partition(b"\r\n")[0].decode("latin-1")
