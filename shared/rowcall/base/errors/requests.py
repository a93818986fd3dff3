"""Errors of requests: for a run, a definition, a list or a change of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from rowcall.base.errors.process import RowcallError


class JobTypeUnknown(RowcallError):
    """A requested job type is unknown."""

    def __init__(self, name: str, known: Sequence[str], hint: str = "") -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"there is no job type {name!r}; known here: {', '.join(self.known)}{hint and f'; {hint}'}")


class RunInvalid(RowcallError):
    """A request for a run has fields that cannot be used; `fields` tells for each what is wrong."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {_sentence(wrong)}" for name, wrong in self.fields.items()))


class FilterInvalid(RowcallError):
    """A filter, or what goes with it, cannot be used; `fields` tells for each what is wrong."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {_sentence(wrong)}" for name, wrong in self.fields.items()))


class SearchTooSlow(RowcallError):
    """Runs were looked for, and the search was stopped before it was done."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the search took longer than {seconds:g} seconds and was stopped: narrow it, for example with"
            " created_after, or with status=failed,dead, a definition or a key, which have indexes of their own"
        )


class TooManySearches(RowcallError):
    """An API key has reached its limit of concurrent searches in payloads."""

    def __init__(self, at_once: int) -> None:
        super().__init__(
            f"this key has {at_once} searches in payloads under way, which is the limit: wait for one to end,"
            " or filter by something else than the payload"
        )


class ScheduleInvalid(RowcallError):
    """A schedule or one of its settings is invalid; `field` names it, if it is a single field."""

    def __init__(self, field: str | None, sentence: str) -> None:
        self.field = field
        super().__init__(sentence)


class DefinitionInvalid(RowcallError):
    """A definition has fields that cannot be used; `fields` tells for each what is wrong."""

    def __init__(self, name: str, fields: Mapping[str, object]) -> None:
        self.name = name
        self.fields = dict(fields)
        self.sentences = [f"definition {name!r}, {field}: {_sentence(wrong)}" for field, wrong in self.fields.items()]
        super().__init__("; ".join(self.sentences))


class DefinitionFileInvalid(RowcallError):
    """A file of definitions cannot be read, or some of what it holds cannot be used."""


class DefinitionNotFound(RowcallError):
    """No definition has this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        # No name is longer than that.
        super().__init__(f"there is no definition {name[:100]!r}; `rowcall definitions list` shows those that are")


class DefinitionChanged(RowcallError):
    """A definition does not meet the caller's condition; `version` is its current one, None if it does not exist."""

    def __init__(self, name: str, version: str | None) -> None:
        self.name = name
        self.version = version
        super().__init__(
            f"there is no definition {name!r} to change: leave out If-Match to create it"
            if version is None
            else f"definition {name!r} is at version {version} now, which the condition of this request excludes:"
            " look at it again, decide anew, and send If-Match with its ETag to change it"
        )


class DefinitionBroken(RowcallError):
    """A definition cannot be decided, because its content or the code of its type fails."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"definition {name!r} cannot be decided: {reason}")


class KeyConflict(RowcallError):
    """An idempotency key was sent again with other content; perhaps another run has the natural key of that content."""

    def __init__(self, key: str, run_id: int, natural_key: str | None = None, other_run_id: int | None = None) -> None:
        self.key = key
        self.run_id = run_id
        other = "" if other_run_id is None else f" (and run {other_run_id} holds the natural key {natural_key!r})"
        super().__init__(
            f"the idempotency key {key!r} belongs to run {run_id}, which was requested with other content{other};"
            " send the same content, or another key"
        )


class NaturalKeyConflict(RowcallError):
    """A run was requested whose natural key another run of the type holds, with other content."""

    def __init__(self, job_type: str, natural_key: str, run_id: int) -> None:
        self.key = natural_key
        self.run_id = run_id
        super().__init__(
            f"run {run_id} of {job_type} holds the natural key {natural_key!r} and was requested with other content;"
            f" another idempotency key makes no second run of it; `rowcall runs show {run_id}` shows what it does"
        )


class KeyGone(RowcallError):
    """The run that held a key ended or was pruned during each of several tries."""

    def __init__(self) -> None:
        super().__init__("the run that had the key has just ended or been deleted: send the request again")


class RunNotFound(RowcallError):
    """No run has this id."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        super().__init__(f"there is no run {run_id}; `rowcall runs list` shows those that are")


class TransitionRefused(RowcallError):
    """A run's status does not allow what was asked; `allowed` names the events it does allow."""

    def __init__(
        self, run_id: int, event: str, status: str, allowed: Sequence[str], reason: str = "", instead: str = "nothing"
    ) -> None:
        self.run_id = run_id
        self.event = event
        self.status = status
        self.allowed = tuple(allowed)
        because = f" ({reason})" if reason else ""
        super().__init__(
            f"run {run_id} is {status}{because}: {event} is not possible now;"
            f" possible: {', '.join(self.allowed) or instead}"
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
            instead="to enqueue its payload anew, without a key or under another one",
        )


class NaturalKeyHeld(TransitionRefused):
    """A run cannot be retried while another run holds its natural key."""

    def __init__(self, run_id: int, event: str, status: str, holder: int) -> None:
        super().__init__(
            run_id,
            event,
            status,
            allowed=(),
            reason=f"run {holder} holds the natural key",  # which may tell a part of the payload
            instead=f"nothing while run {holder} holds it",
        )


class RunChanged(RowcallError):
    """A run has changed since the caller read it; `version` is its current one."""

    def __init__(self, run_id: int, version: str) -> None:
        self.run_id = run_id
        self.version = version
        super().__init__(
            f"run {run_id} has changed since you saw it, and is {version} now: look at it again, and decide anew"
        )


def _sentence(wrong: object) -> str:
    """What is wrong with a field, as words: marshmallow nests lists and mappings."""
    if isinstance(wrong, Mapping):
        return ", ".join(f"{name}: {_sentence(inner)}" for name, inner in wrong.items())
    if isinstance(wrong, (list, tuple)):
        return " ".join(_sentence(inner) for inner in wrong)
    return str(wrong)
