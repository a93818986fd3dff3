"""Prepares the occurrences that a tick writes for a definition, with their runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rowcall.base.database import Row
from rowcall.base.errors import RowcallError, RunInvalid, ScheduleInvalid, message_of
from rowcall.definitions.broken import breaking
from rowcall.definitions.check import SAMPLE
from rowcall.definitions.content import Content
from rowcall.job_types import Catalogue, JobType
from rowcall.schedule import Decision, Outcome

REASON_CHARACTERS = 1000


class Occurrence(NamedTuple):
    """A decision, and the payload, natural key and fingerprint of its run, as the parameters of OCCUR."""

    nominal_at: datetime
    outcome: Outcome
    reason: str | None
    run_at: datetime | None
    payload: str | None = None
    natural_key: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True)
class Written:
    """The occurrences to write, and, if a nominal time is left to another worker, that time and the reason."""

    occurrences: Sequence[Occurrence]
    left: datetime | None = None
    refused: str | None = None


def with_runs(decisions: Sequence[Decision], content: Content, job_type: JobType, patient_since: datetime) -> Written:
    """Prepare the runs of these decisions, up to the first payload that the job type refuses.

    In a rolling deploy, a newer worker may accept the payload, so that time stays unprocessed.  A time before
    `patient_since` is recorded as missed, with the reason.
    """
    occurrences: list[Occurrence] = []
    for decision in decisions:
        plain = Occurrence(decision.nominal, decision.outcome, decision.reason, decision.run_at)
        if decision.outcome is not Outcome.ENQUEUED:
            occurrences.append(plain)
            continue
        try:
            run = content.prepared(job_type, decision.nominal)
        except (RunInvalid, ScheduleInvalid) as error:
            refused = f"{job_type.name} refuses the payload: {error}"[:REASON_CHARACTERS]
            if decision.nominal > patient_since:
                return Written(occurrences, decision.nominal, refused)
            occurrences.append(Occurrence(decision.nominal, Outcome.MISSED, refused, None))
        else:
            keys = run.keys.natural_key, run.keys.content_fingerprint
            occurrences.append(Occurrence(*plain[:4], run.payload, *keys))
    return Written(occurrences)


def problem_of(row: Row, catalogue: Catalogue) -> str | None:
    """Return why this process cannot handle the definition's next nominal time, or None if it can."""
    try:
        with breaking(row["name"]):
            content = Content.of(row)
            content.rule(row["name"], paused=False)
            content.prepared(catalogue[content.job_type], row["next_run_at"] or SAMPLE)
    except RowcallError as error:
        return message_of(error)
    return None
