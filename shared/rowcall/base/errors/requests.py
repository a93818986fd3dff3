"""Errors of requests that concern runs, definitions and lists."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from datetime import datetime

from rowcall.base.errors.process import RowcallError

# Comparing a name takes longer the longer it is, and no job type has a longer one.
COMPARED_CHARACTERS = 100


class JobTypeUnknown(RowcallError):
    """No job type has this name."""

    def __init__(self, name: str, known: Sequence[str], hint: str = "") -> None:
        self.name = name
        self.known = tuple(known)
        near = difflib.get_close_matches(name, self.known, n=1) if len(name) <= COMPARED_CHARACTERS else []
        parts = (f"known here: {', '.join(self.known)}", hint, f"did you mean {near[0]!r}?" if near else "")
        super().__init__("; ".join((f"there is no job type {name!r}", *filter(None, parts))))


class RunInvalid(RowcallError):
    """A request for a run has invalid fields; `fields` says for each what is wrong."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {_sentence(wrong)}" for name, wrong in self.fields.items()))


class FilterInvalid(RowcallError):
    """A filter, or another parameter of a list, is invalid; `fields` says for each what is wrong."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {_sentence(wrong)}" for name, wrong in self.fields.items()))


class SearchTooSlow(RowcallError):
    """A search for runs took too long and was stopped."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the search took longer than {seconds:g} seconds and was stopped: narrow it, for example with"
            " created_after, or with status=failed,dead, a definition or a key, which have indexes"
        )


class TooManySearches(RowcallError):
    """An API key has reached its limit of concurrent payload searches."""

    def __init__(self, at_once: int) -> None:
        super().__init__(
            f"this key is already running {at_once} payload searches, which is the limit: wait for one to end,"
            " or do not filter by payload"
        )


class TooManyWaiting(RowcallError):
    """This process of the API has reached its limit of waiting requests."""

    def __init__(self) -> None:
        super().__init__("too many requests are waiting here: try again in a moment, or leave out `wait`")


class ScheduleInvalid(RowcallError):
    """A schedule or one of its settings is invalid; `field` names the field, if exactly one is invalid."""

    def __init__(self, field: str | None, sentence: str) -> None:
        self.field = field
        super().__init__(sentence)


class DefinitionInvalid(RowcallError):
    """A definition has invalid fields; `fields` says for each what is wrong."""

    def __init__(self, name: str, fields: Mapping[str, object]) -> None:
        self.name = name
        self.fields = dict(fields)
        self.sentences = [f"definition {name!r}, {field}: {_sentence(wrong)}" for field, wrong in self.fields.items()]
        super().__init__("; ".join(self.sentences))


class DefinitionFileInvalid(RowcallError):
    """A file of definitions cannot be read, or some of its content is invalid."""


class DefinitionNotFound(RowcallError):
    """No definition has this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        # A valid name has at most 100 characters.
        super().__init__(f"there is no definition {name[:100]!r}; `rowcall definitions list` shows all definitions")


class DefinitionChanged(RowcallError):
    """A definition does not meet the caller's condition; `version` is its version now, or None if it does not exist."""

    def __init__(self, name: str, version: str | None) -> None:
        self.name = name
        self.version = version
        super().__init__(
            f"there is no definition {name!r} to change: leave out If-Match to create it"
            if version is None
            else f"definition {name!r} is now at version {version}, which does not meet the condition of this request:"
            " read it again, and send If-Match with its ETag to change it"
        )


class DefinitionBroken(RowcallError):
    """A definition's nominal times cannot be decided, because its content is invalid or its job type's code fails."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"definition {name!r} cannot be decided: {reason}")


class KeyTaken(RowcallError):
    """A run with different content already has one of the request's keys.

    `position` is the place of that request among several; `place` is its path in the body of a batch.
    """

    position = 0
    place: tuple[str | int, ...] = ()


class KeyConflict(KeyTaken):
    """An idempotency key was reused with different content; another run may hold that content's natural key."""

    def __init__(self, key: str, run_id: int, natural_key: str | None = None, other_run_id: int | None = None) -> None:
        self.key = key
        self.run_id = run_id
        other = "" if other_run_id is None else f" (and run {other_run_id} holds the natural key {natural_key!r})"
        super().__init__(
            f"the idempotency key {key!r} belongs to run {run_id}, which was requested with different content{other};"
            " send the same content or another key"
        )


class NaturalKeyConflict(KeyTaken):
    """Another run of the type, with different content, holds the natural key of a requested run."""

    def __init__(self, job_type: str, natural_key: str, run_id: int) -> None:
        self.key = natural_key
        self.run_id = run_id
        super().__init__(
            f"run {run_id} of {job_type} holds the natural key {natural_key!r} and was requested with different"
            f" content; another idempotency key does not change that; `rowcall runs show {run_id}` shows the run"
        )


class KeyGone(RowcallError):
    """Several tries to enqueue found a key taken, but each time the run that held it ended or was pruned."""

    def __init__(self) -> None:
        super().__init__("the run that had the key has just ended or been deleted: send the request again")


class RunNotFound(RowcallError):
    """No run has this id."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        super().__init__(f"there is no run {run_id}; `rowcall runs list` shows all runs")


class TransitionRefused(RowcallError):
    """A run's status does not allow this event; `allowed` names the events that it allows."""

    def __init__(
        self, run_id: int, event: str, status: str, allowed: Sequence[str], reason: str = "", instead: str = "nothing"
    ) -> None:
        self.run_id = run_id
        self.event = event
        self.status = status
        self.allowed = tuple(allowed)
        because = f" ({reason})" if reason else ""
        super().__init__(
            f"run {run_id} is {status}{because}: {event} is not allowed now;"
            f" allowed: {', '.join(self.allowed) or instead}"
        )


class RunPruned(TransitionRefused):
    """A run cannot be retried because only its bare row is left."""

    def __init__(self, run_id: int, event: str, status: str, pruned_at: datetime) -> None:
        super().__init__(
            run_id,
            event,
            status,
            allowed=(),
            reason=f"its payload was pruned on {pruned_at:%Y-%m-%d}",
            instead="enqueuing its payload again, without a key or with another one",
        )


class NaturalKeyHeld(TransitionRefused):
    """A run cannot be retried while another run holds its natural key."""

    def __init__(self, run_id: int, event: str, status: str, holder: int) -> None:
        super().__init__(
            run_id,
            event,
            status,
            allowed=(),
            reason=f"run {holder} holds the natural key",  # not the key itself, which may contain payload data
            instead=f"nothing while run {holder} holds it",
        )


class RunChanged(RowcallError):
    """A run has changed since the caller read it; `version` is its current one."""

    def __init__(self, run_id: int, version: str) -> None:
        self.run_id = run_id
        self.version = version
        super().__init__(
            f"run {run_id} has changed since you read it; its version is now {version}: read it again before you"
            " change it"
        )


def _sentence(wrong: object) -> str:
    """Format what is wrong with a field; marshmallow nests lists and mappings, and ends each message with a period."""
    if isinstance(wrong, Mapping):
        return ", ".join(f"{name}: {_sentence(inner)}" for name, inner in wrong.items())
    if isinstance(wrong, (list, tuple)):
        return "; ".join(_sentence(inner) for inner in wrong)
    return str(wrong).removesuffix(".")
