"""Options that say which runs are meant, for lists and for many at once: the API's filters by the same names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from rowcall.cli.parameters import JsonObject, Moment
from rowcall.queue import Filter
from rowcall.status import Status

# As words: click would offer an enum by its members' names.
STATUSES = click.Choice([status.value for status in Status])

OPTIONS = (
    click.option("--status", multiple=True, type=STATUSES, help="Only these; may be repeated."),
    click.option("--type", "job_type", help="Only of this job type."),
    click.option("--queue", help="Only of this queue."),
    click.option("--definition", help="Only runs of this definition."),
    click.option("--key", help="Only the one with this idempotency key."),
    click.option("--error-type", help="Only those whose latest error is of this type."),
    click.option("--created-by", help="Only those that this one asked for."),
    click.option("--created-after", type=Moment(), help="Only those made at this time or later."),
    click.option("--created-before", type=Moment(), help="Only those made before this time."),
    click.option("--run-after", type=Moment(), help="Only those due at this time or later."),
    click.option("--run-before", type=Moment(), help="Only those due before this time."),
    click.option("--finished-after", type=Moment(), help="Only those finished at this time or later."),
    click.option("--finished-before", type=Moment(), help="Only those finished before this time."),
    click.option("--payload", type=JsonObject(), help="Only those whose payload contains this JSON object."),
)


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; what they say is its argument `wanted`."""

    @functools.wraps(command)
    def with_filter(**options: Any) -> None:
        said = {name: options.pop(name) for name in Filter.__dataclass_fields__}
        wanted = Filter(**{**said, "status": tuple(map(Status, said["status"]))})
        command(wanted=wanted, **options)

    for option in reversed(OPTIONS):
        with_filter = option(with_filter)
    return with_filter
