"""Divides what is sent into portions, so that no statement gets too large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def divided(
    items: Iterable[Item], size: Callable[[Item], int], largest: int, most: int | None = None
) -> Iterator[list[Item]]:
    """Yield the items in order, in portions of at most this total size and this number; a larger item is alone."""
    portion: list[Item] = []
    total = 0
    for item in items:
        length = size(item)
        if portion and (total + length > largest or len(portion) == most):
            yield portion
            portion, total = [], 0
        portion.append(item)
        total += length
    if portion:
        yield portion
