"""What is measured: for each measure, the figures of one system, by name; a system that cannot do it has no figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.bench import effects, http
from tests.bench.measures import Bench
from tests.bench.peers.peer import Peer
from tests.bench.peers.report import BESIDE_FINISHED, ONE_PROCESS, OURS, PLAIN

ONE_BY_ONE = 3_000
CHUNKS = (1_000, 20_000)
DRAINED = 100_000
FINISHED = 1_000_000
PICKED_UP = 200
PAUSE_SECONDS = 0.05


class Measure(NamedTuple):
    """A measure: its unit, and what takes its figures for a peer on a server."""

    unit: str
    take: Callable[[Peer, str], Mapping[str, float]]


def _single(peer: Peer, server: str) -> Mapping[str, float]:
    return {"enqueue one by one, a commit each": peer.rate(server, "single", count=ONE_BY_ONE)}


def _bulk(peer: Peer, server: str) -> Mapping[str, float]:
    return {f"enqueue {chunk:,} at once": _together(peer, server, chunk) for chunk in CHUNKS}


def _keyed(peer: Peer, server: str) -> Mapping[str, float]:
    return {
        f"enqueue {chunk:,} at once, each with a key": _together(peer, server, chunk, keyed=True) for chunk in CHUNKS
    }


def _together(peer: Peer, server: str, chunk: int, keyed: bool = False) -> float:
    return peer.rate(server, "bulk", count=max(CHUNKS), chunk=chunk, keyed=keyed)


def _drain(peer: Peer, server: str) -> Mapping[str, float]:
    figures = {ONE_PROCESS: peer.drained(server, DRAINED, 1)}
    if peer.earlier:
        figures[BESIDE_FINISHED] = peer.drained(server, DRAINED, 1, FINISHED)
    return {**figures, "drain 100,000 with two processes": peer.drained(server, DRAINED, 2)}


def _pick_up(peer: Peer, server: str) -> Mapping[str, float]:
    taken = peer.picked_up(server, PICKED_UP, PAUSE_SECONDS)
    shares = {"median": 0.5, "95%": 0.95, "99%": 0.99}
    return {f"pick-up, {name}": taken[int(len(taken) * share)] for name, share in shares.items()}


def _in_bench(name: str, figures: Mapping[str, Callable[[Bench], float]]) -> Callable[[Peer, str], Mapping[str, float]]:
    """Return what `make bench` measures, on a peer's own database."""

    def take(peer: Peer, server: str) -> Mapping[str, float]:
        if peer.name not in figures:
            return {}
        peer.fresh(server)
        return {name: figures[peer.name](Bench(peer.url(server)))}

    return take


MEASURES = {
    "single": Measure("jobs/s", _single),
    "bulk": Measure("jobs/s", _bulk),
    "keyed": Measure("jobs/s", _keyed),
    "drain": Measure("jobs/s", _drain),
    "effects": Measure(
        "jobs/s",
        _in_bench(f"drain {effects.RUNS:,} with an effect each", {OURS: effects.performed, PLAIN: effects.plain}),
    ),
    "http": Measure(
        "requests/s", _in_bench(f"POST /v1/runs, {http.CLIENTS} clients", {OURS: http.posted, PLAIN: http.plain})
    ),
    "pick-up": Measure("ms", _pick_up),
}
