"""Backoff: how long a failed run waits before its next attempt."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Computes the delay from the number of attempts so far.

    With jitter, the delay is random between 0 and the computed one, so that runs that failed together are not retried
    together.
    """

    delay_after: Callable[[int], float]
    cap: float
    jitter: bool

    def delay(self, attempts: int, chance: Callable[[], float] = random.random) -> float:
        """Return the seconds to wait after this many attempts."""
        whole = min(self.delay_after(attempts), self.cap)
        return whole * chance() if self.jitter else whole


def fixed(seconds: float, jitter: bool = True) -> Backoff:
    """Wait equally long after every attempt; with jitter, for a random part of that time."""
    _check(base=seconds, cap=seconds)
    return Backoff(lambda attempts: seconds, seconds, jitter)


def quadratic(base: float = 5, cap: float = 3600, jitter: bool = True) -> Backoff:
    """Wait base times the square of the number of attempts; with jitter, for a random part of that time."""
    _check(base, cap)
    return Backoff(lambda attempts: attempts**2 * base, cap, jitter)


def exponential(base: float = 5, cap: float = 3600, jitter: bool = True) -> Backoff:
    """Wait base after the first attempt, twice as long after each further one; with jitter, a random part of that."""
    _check(base, cap)
    # 2.0 ** 1024 would overflow; every cap is reached long before that.
    return Backoff(lambda attempts: base * 2.0 ** min(max(attempts - 1, 0), 64), cap, jitter)


def _check(base: float, cap: float) -> None:
    if not 0 <= base <= cap <= 366 * 86400:
        raise ValueError(f"backoff: base {base:g} and cap {cap:g} must be seconds with 0 <= base <= cap <= 366 days")
