"""The job types of housekeeping.  Their payload is the policy; an empty payload means the defaults."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from rowcall.job_types.backoff import fixed
from rowcall.job_types.declaration import NAME, JobType
from rowcall.job_types.definition import Definition
from rowcall.status import FINAL

LONGEST_DAYS = 3650
LONGEST_MONTHS = 1200
LARGEST_BATCH = 10_000

# Where pruned runs are archived, if they are.
ARCHIVES = ("files", "table")


def _days(default: float | None = None) -> fields.Float:
    within = validate.Range(1, LONGEST_DAYS, error=f"Must be a number of days from 1 to {LONGEST_DAYS}.")
    return fields.Float(validate=within) if default is None else fields.Float(load_default=default, validate=within)


def _job_type() -> fields.String:
    # Not only types in the catalogue, because runs of removed types are pruned too.
    return fields.String(validate=validate.Regexp(f"{NAME.pattern}\\Z", error="Must be a job type's name."))


def _batch() -> fields.Integer:
    return fields.Integer(strict=True, load_default=1000, validate=validate.Range(1, LARGEST_BATCH))


def _archive(where: object) -> None:
    """Refuse what names no archive; a function, because generators of clients know no enumeration of several types."""
    if not isinstance(where, bool) and where not in ARCHIVES:
        raise ValidationError('Must be false, "files" or "table"; true means "files".')


class KeptDays(Schema):
    """How many days to keep runs after they finish, by status."""

    succeeded = _days(14)
    cancelled = _days(30)
    dead = _days(90)


class PruneRuns(Schema):
    """How long to keep runs and occurrences, and whether to archive runs first."""

    keep_days = fields.Nested(KeptDays, load_default=lambda: KeptDays().load({}))
    types = fields.Dict(
        keys=_job_type(),
        values=fields.Dict(keys=fields.String(validate=validate.OneOf([*FINAL])), values=_days()),
        load_default=dict,
    )
    archive = fields.Raw(load_default=False, validate=_archive)
    keep_archive_months = fields.Integer(
        strict=True, load_default=None, allow_none=True, validate=validate.Range(1, LONGEST_MONTHS)
    )
    export_archive = fields.String(load_default=None, allow_none=True, validate=validate.OneOf(["csv", "parquet"]))
    keep_occurrences_days = _days(90)
    batch = _batch()

    @validates_schema
    def _months_are_of_the_table(self, data: dict[str, Any], **_: object) -> None:
        for name in ("keep_archive_months", "export_archive"):
            if data.get(name) is not None and data.get("archive") != "table":
                raise ValidationError(f'Is only for archive = "table"; archive is {data.get("archive")!r}.', name)
        if data.get("export_archive") is not None and data.get("keep_archive_months") is None:
            raise ValidationError("Needs keep_archive_months, after which months are exported.", "export_archive")


class ExpireKeys(Schema):
    """How many days to keep keys after their runs finish."""

    keep_days = _days(365)
    types = fields.Dict(keys=_job_type(), values=_days(), load_default=dict)
    batch = _batch()


class CarryOutOperation(Schema):
    """The operation to carry out."""

    operation_id = fields.Integer(strict=True, required=True, validate=validate.Range(1))


# These delete history, and the keys that recognize repeated requests, so only a key with the scope admin may enqueue or
# schedule them.  They have no natural key, because two runs at once do no harm.
PRUNE_RUNS = JobType("prune_runs", schema=PruneRuns, scope="admin", queue="maintenance", backoff=fixed(60))

EXPIRE_KEYS = JobType("expire_keys", schema=ExpireKeys, scope="admin", queue="maintenance", backoff=fixed(60))

# Enqueued with the operation, and again when it is continued; a second run would only take turns with the first.
CARRY_OUT_OPERATION = JobType(
    "carry_out_operation", schema=CarryOutOperation, scope="operate", queue="maintenance", backoff=fixed(10)
)

# Active by default, at night, with jitter to spread the load.  A file of definitions can override them by name.
PRUNE_RUNS_NIGHTLY = Definition("prune_runs", PRUNE_RUNS, "17 3 * * *", jitter="30m")

EXPIRE_KEYS_NIGHTLY = Definition("expire_keys", EXPIRE_KEYS, "17 4 * * *", jitter="30m")
