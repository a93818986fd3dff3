"""Rate limits as token buckets in this process's memory, which cost the database nothing.

Each process of the API server has its share of a limit, so that no process needs another.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

# A bucket takes about 300 bytes.  With more callers than this, the least recent ones start again with a full bucket.
BUCKETS_MOST = 10_000


@dataclass(frozen=True)
class Policy:
    """How many requests are allowed in a burst, and per second on average."""

    per_second: float
    burst: float

    def share(self, processes: int) -> Policy:
        """The share of one process among so many: at least one request."""
        return Policy(self.per_second / processes, max(1.0, self.burst / processes))

    @property
    def window(self) -> int:
        """Seconds until an empty bucket is full again, rounded up."""
        return math.ceil(self.burst / self.per_second)


@dataclass(frozen=True)
class Bucket:
    """The requests that a caller had left at a given time."""

    level: float
    at: float

    def filled(self, policy: Policy, now: float) -> Bucket:
        """The same bucket at a later time; threads may pass times that are slightly out of order."""
        return Bucket(min(policy.burst, self.level + max(0.0, now - self.at) * policy.per_second), max(now, self.at))


@dataclass(frozen=True)
class Answer:
    """Whether a request may pass, how many more may follow at once, and in how many seconds one more."""

    granted: bool
    left: int
    seconds: int


class Buckets:
    """One bucket for each caller, all under one policy; any thread may ask."""

    def __init__(self, policy: Policy, most: int = BUCKETS_MOST) -> None:
        self.policy = policy
        self._most = most
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: Hashable, now: float) -> Answer:
        """Take one request from the bucket, if there is one."""
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
        """Whether this caller has a bucket."""
        with self._lock:
            return caller in self._buckets

    def forget(self, caller: Hashable) -> None:
        """Remove the bucket."""
        with self._lock:
            self._buckets.pop(caller, None)

    def _filled(self, caller: Hashable, now: float) -> Bucket:
        return self._buckets.get(caller, Bucket(self.policy.burst, now)).filled(self.policy, now)

    def _answer(self, granted: bool, level: float) -> Answer:
        missing = math.floor(level) + 1 - level
        return Answer(granted, math.floor(level), max(1, math.ceil(missing / self.policy.per_second)))
