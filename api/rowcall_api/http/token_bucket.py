"""Implements rate limits as token buckets in memory, without load on the database.

Each API process gets its share of a limit, so that processes need not communicate.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

# A bucket takes about 300 bytes.  With more callers than this, the least recently seen start again with a full bucket.
BUCKETS_MOST = 10_000


@dataclass(frozen=True)
class Policy:
    """How many requests are allowed per second on average, and in a burst."""

    per_second: float
    burst: float

    def share(self, processes: int) -> Policy:
        """Return the share of each of this many processes: at least one request."""
        return Policy(self.per_second / processes, max(1.0, self.burst / processes))

    @property
    def quota(self) -> int:
        """How many requests may be made at once."""
        return int(self.burst)

    @property
    def window(self) -> int:
        """The seconds until an empty bucket is full again, rounded up."""
        return math.ceil(self.burst / self.per_second)


@dataclass(frozen=True)
class Bucket:
    """The number of requests that a caller had left at a given time."""

    level: float
    at: float

    def filled(self, policy: Policy, now: float) -> Bucket:
        """Return the bucket at a later time; `now` may be slightly earlier if another thread was faster."""
        return Bucket(min(policy.burst, self.level + max(0.0, now - self.at) * policy.per_second), max(now, self.at))


@dataclass(frozen=True)
class Answer:
    """Whether a request may pass, how many more may follow at once, and the seconds until one more may."""

    granted: bool
    left: int
    seconds: int


class Buckets:
    """One bucket for each caller under a common policy; thread-safe."""

    def __init__(self, policy: Policy, most: int = BUCKETS_MOST) -> None:
        self.policy = policy
        self._most = most
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: Hashable, now: float) -> Answer:
        """Take one request from the caller's bucket if it is not empty."""
        with self._lock:
            bucket = self._filled(caller, now)
            granted = bucket.level >= 1
            bucket = Bucket(bucket.level - granted, bucket.at)
            self._buckets[caller] = bucket
            self._buckets.move_to_end(caller)
            while len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return self._answer(granted, bucket.level)

    def knows(self, caller: Hashable) -> bool:
        """Return whether this caller has a bucket."""
        with self._lock:
            return caller in self._buckets

    def forget(self, caller: Hashable) -> None:
        """Remove the caller's bucket."""
        with self._lock:
            self._buckets.pop(caller, None)

    def _filled(self, caller: Hashable, now: float) -> Bucket:
        return self._buckets.get(caller, Bucket(self.policy.burst, now)).filled(self.policy, now)

    def _answer(self, granted: bool, level: float) -> Answer:
        missing = math.floor(level) + 1 - level
        return Answer(granted, math.floor(level), max(1, math.ceil(missing / self.policy.per_second)))
