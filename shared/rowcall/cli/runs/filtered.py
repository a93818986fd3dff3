"""The options that select runs, for lists and operations: the API's filters, with the same names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from rowcall.base.errors import RowcallError
from rowcall.base.errors.sentences import did_you_mean
from rowcall.cli.parameters import JsonObject, Moment
from rowcall.cli.terminal.output import shown
from rowcall.job_types import catalogue
from rowcall.queue import Filter
from rowcall.queue.views.filters import Form
from rowcall.status import Status

TYPES = {
    # Strings, because click would offer the names of an enum's members, not their values.
    Form.STATUSES: click.Choice([status.value for status in Status]),
    Form.TEXT: click.STRING,
    Form.TIME: Moment(past=True),
    Form.OBJECT: JsonObject(),
}

# Shorter than the field's name, as in `rowcall worker run --types`.
NAMES = {"job_type": "--type"}


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each filter, and pass them to the command as `criteria`."""

    @functools.wraps(command)
    def with_filter(**options: Any) -> None:
        given = {spec.name: options.pop(spec.name) for spec in fields(Filter)}
        criteria = Filter(**{**given, "status": tuple(map(Status, given["status"]))})
        command(criteria=criteria, **options)

    for spec in reversed(fields(Filter)):
        form, meaning = spec.metadata["form"], spec.metadata["description"]
        option = _option(spec.name)
        several = form is Form.STATUSES
        help_text = f"{meaning}  May be repeated." if several else meaning
        # created_* and finished_* are in the past; run_at may be in the future.
        kind = Moment() if spec.name.startswith("run_") else TYPES[form]
        with_filter = click.option(option, spec.name, type=kind, multiple=several, help=help_text)(with_filter)
    return with_filter


def in_words(criteria: Filter) -> str:
    """The options that make this filter, as they can be typed."""
    given = []
    for spec in fields(Filter):
        value = getattr(criteria, spec.name)
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        given += [f"{_option(spec.name)} {shown(one)}" for one in values]
    return " ".join(given)


def misspelt(criteria: Filter) -> str:
    """Return a question if a job type, queue or definition is not known to the code, but resembles one that is."""
    try:
        known = catalogue()
    except RowcallError:  # a list also works if the app cannot be loaded
        return ""
    asked = (
        (criteria.job_type, known),
        (criteria.queue, known.queues),
        (criteria.definition, known.definitions),
    )
    return "; ".join(
        question
        for name, names in asked
        if name is not None and name not in names and (question := did_you_mean(name, names))
    )


def _option(name: str) -> str:
    return NAMES.get(name, f"--{name.replace('_', '-')}")
