"""What a gateway's error tells the worker and the ledger of effects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base.errors import (
    GatewayError,
    KeyReused,
    OutcomeUnknown,
    Permanent,
    Refused,
    Retry,
    Unavailable,
    WrongCharge,
)


def kinds(kind: type[GatewayError] = GatewayError) -> Iterator[type[GatewayError]]:
    """Yield all error classes of gateways."""
    for below in kind.__subclasses__():
        yield below
        yield from kinds(below)


@pytest.mark.parametrize("kind", list(kinds()))
def test_a_worker_tries_again_or_gives_up_and_never_wonders(kind: type[GatewayError]) -> None:
    assert issubclass(kind, Retry) != issubclass(kind, Permanent)
    assert kind("why").permanent == issubclass(kind, Permanent)
    assert str(kind("why")) == "why"


def test_only_these_leave_open_whether_the_outside_has_acted() -> None:
    assert {kind for kind in kinds() if kind.acted == "maybe"} == {OutcomeUnknown, WrongCharge, KeyReused}


def test_only_what_is_tried_again_has_a_time_for_it() -> None:
    assert Unavailable("why", 7).after == OutcomeUnknown("why", 7).after == 7
    assert Unavailable("why").after is Refused("why").after is None
