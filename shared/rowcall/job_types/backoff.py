"""How long a failed run waits before its next attempt."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """A rule from the number of attempts made to the seconds to wait, with full jitter unless told otherwise.

    Full jitter (anything from nothing to the whole delay) keeps runs that failed together from coming back together.
    """

    delay_after: Callable[[int], float]
    cap: float
    jitter: bool

    def delay(self, attempts: int, chance: Callable[[], float] = random.random) -> float:
        """Seconds to wait after this many attempts."""
        whole = min(self.delay_after(attempts), self.cap)
        return whole * chance() if self.jitter else whole


def fixed(seconds: float, jitter: bool = True) -> Backoff:
    """The same delay after every attempt."""
    _check(base=seconds, cap=seconds)
    return Backoff(lambda attempts: seconds, seconds, jitter)


def quadratic(base: float = 5, cap: float = 3600, jitter: bool = True) -> Backoff:
    """attempts squared times base: gentle at first, patient later."""
    _check(base, cap)
    return Backoff(lambda attempts: attempts**2 * base, cap, jitter)


def exponential(base: float = 5, cap: float = 3600, jitter: bool = True) -> Backoff:
    """base, doubled after every attempt."""
    _check(base, cap)
    # 2.0 ** 1024 overflows, and long before that any cap is reached.
    return Backoff(lambda attempts: base * 2.0 ** min(max(attempts - 1, 0), 64), cap, jitter)


def _check(base: float, cap: float) -> None:
    if not 0 <= base <= cap <= 366 * 86400:
        raise ValueError(f"backoff: base {base:g} and cap {cap:g} must be seconds with 0 <= base <= cap <= 366 days")
