"""All faults of a request for a run, in one answer."""

from __future__ import annotations

from types import ModuleType

import pytest
from marshmallow import Schema, fields

from rowcall.job_types import Catalogue, JobType
from rowcall.queue import faults, faults_of


class Parcel(Schema):
    """Its own code fails for one weight."""

    weight = fields.Integer(validate=lambda weight: 1 / weight)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be one type, whose schema can fail."""
    app = ModuleType("parcels")
    vars(app)["PARCEL"] = JobType("parcel", schema=Parcel, queue="parcels", max_running=1)
    monkeypatch.setattr(faults, "catalogue", lambda: Catalogue(app))


def test_each_part_is_named_and_a_part_that_is_missing_is_not_examined() -> None:
    assert faults_of({}) == {}
    assert faults_of({"job_type": "parcel"}) == {}
    wrong = faults_of({"job_type": "parcel", "payload": {"weight": "heavy"}, "queue": "mail", "max_attempts": 0})
    assert wrong.keys() == {"payload", "queue", "max_attempts"}
    assert faults_of({"job_type": "parcels", "queue": "mail", "priority": 1.5}).keys() == {"job_type", "priority"}


def test_a_schema_whose_code_fails_does_not_hide_the_rest() -> None:
    assert faults_of({"job_type": "parcel", "payload": {"weight": 0}, "priority": 1.5}).keys() == {"priority"}
