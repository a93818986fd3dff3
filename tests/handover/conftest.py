"""A RabbitMQ for each module, and a database and a queue for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.handover.parcels import QUEUE, Parcels
from tests.support.broker import Broker, rabbitmq


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with rabbitmq() as broker:
        yield broker


@pytest.fixture
def parcels(environment: dict[str, str], fresh_url: str, broker: Broker, tmp_path: Path) -> Iterator[Parcels]:
    broker.declare(QUEUE)
    yield Parcels(environment, fresh_url, broker, tmp_path)
    broker.delete(QUEUE)
