"""Errors of requests that concern runs, definitions and lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rowcall.base.errors.process import RowcallError
from rowcall.base.errors.sentences import Fault, did_you_mean, has_status, sentence


class JobTypeUnknown(RowcallError):
    """No job type has this name."""

    code = "job-type-unknown"

    def __init__(self, name: str, known: Sequence[str], hint: str = "") -> None:
        self.name = name
        self.known = tuple(known)
        parts = (f"known here: {', '.join(self.known)}", hint, did_you_mean(name, self.known))
        super().__init__("; ".join((f"there is no job type {name!r}", *filter(None, parts))))

    @property
    def fault(self) -> Fault:
        """What is wrong with the value that contains this name."""
        return Fault(str(self), self.code)


class RunInvalid(RowcallError):
    """A request for a run has invalid fields; `fields` says what is wrong with each."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {sentence(wrong)}" for name, wrong in self.fields.items()))


class FilterInvalid(RowcallError):
    """One or more filters or other parameters of a list are invalid; `fields` says what is wrong with each."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {sentence(wrong)}" for name, wrong in self.fields.items()))


class SearchTooSlow(RowcallError):
    """A search for runs took too long and was stopped."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the search took longer than {seconds:.2g} seconds and was stopped: narrow it, for example with"
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
    """This API process has reached its limit of waiting requests."""

    def __init__(self) -> None:
        super().__init__("too many requests are waiting here: try again in a moment, or read runs without `wait`")


class ScheduleInvalid(RowcallError):
    """A schedule or one of its settings is invalid; `field` names the field, if exactly one is invalid."""

    def __init__(self, field: str | None, why: str) -> None:
        self.field = field
        super().__init__(why)


class DefinitionInvalid(RowcallError):
    """A definition has invalid fields; `fields` says what is wrong with each."""

    def __init__(self, name: str, fields: Mapping[str, object]) -> None:
        self.name = name
        self.fields = dict(fields)
        self.sentences = [f"definition {name!r}, {field}: {sentence(wrong)}" for field, wrong in self.fields.items()]
        super().__init__("; ".join(self.sentences))


class DefinitionFileInvalid(RowcallError):
    """A file of definitions cannot be read, or some of its content is invalid."""


class DefinitionNotFound(RowcallError):
    """No definition has this name."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        self.name = name
        # A valid name has at most 100 characters.
        missing = f"there is no definition {name[:100]!r}; `rowcall definitions list` shows all definitions"
        super().__init__("; ".join(filter(None, (missing, did_you_mean(name, known)))))


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
    """A definition's nominal times cannot be processed, because its content is invalid or its job type's code fails."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the nominal times of definition {name!r} cannot be processed: {reason}")


class KeyTaken(RowcallError):
    """A run with different content already has one of the request's keys.

    `position` is the place of that request among several, and `other` is the place of the request whose run has the
    key, if that is one of them.  `places` are the paths of the requests in the body of a batch.
    """

    run_id: int
    position = 0
    other: int | None = None
    places: Sequence[tuple[str | int, ...]] = ()
    _key_is = ""
    _remedy = "send the same content or another key"

    def between(self, one: str, other: str) -> None:
        """Name two of the requests instead of the run that has the key, because that run is rolled back."""
        both = f"{one} and {other} have the same {self._key_is} but different content"
        self.args = (f"{both}: {self._remedy}",)


class KeyConflict(KeyTaken):
    """An idempotency key was reused with different content; another run may hold that content's natural key."""

    def __init__(self, key: str, run_id: int, natural_key: str | None = None, other_run_id: int | None = None) -> None:
        self.key = key
        self.run_id = run_id
        self._key_is = f"idempotency key {key!r}"
        other = "" if other_run_id is None else f" (and run {other_run_id} holds the natural key {natural_key!r})"
        super().__init__(
            f"the idempotency key {key!r} belongs to run {run_id}, which was requested with different content{other};"
            " send the same content or another key"
        )


class NaturalKeyConflict(KeyTaken):
    """Another run of the type, with different content, holds the natural key of a requested run."""

    _remedy = "send only one of them, or the same content in both"

    def __init__(self, job_type: str, natural_key: str, run_id: int) -> None:
        self.key = natural_key
        self.run_id = run_id
        self._key_is = f"natural key {natural_key!r}"
        super().__init__(
            f"run {run_id} of {job_type} holds the natural key {natural_key!r} and was requested with different"
            f" content; another idempotency key does not change that; `rowcall runs show {run_id}` shows the run"
        )


class KeyGone(RowcallError):
    """Several tries to enqueue found a key taken, but could not find the run that has it."""

    def __init__(self) -> None:
        super().__init__(
            "the key has just been taken by another request, or the run that had it has just ended or been deleted:"
            " send the request again"
        )


class RunNotFound(RowcallError):
    """No run has this id."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        super().__init__(f"there is no run {run_id}; `rowcall runs list` shows all runs")


ONLY_ONCE = "nothing, because its natural key allows no second run"

FINAL_AND_ONLY_ONCE = "nothing, because a succeeded run is final, and its natural key allows no second run"


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
            f"run {run_id} {has_status(status)}{because}: {event} is not allowed;"
            f" allowed: {', '.join(self.allowed) or instead}"
        )


class RunPruned(TransitionRefused):
    """A run cannot be retried because only its bare row is left: it was pruned, or an operator erased it."""

    def __init__(self, run_id: int, event: str, status: str, pruned_at: datetime, erased: bool, once: bool) -> None:
        gone, source = ("erased", "a new payload") if erased else ("pruned", "its payload (if you still have it)")
        again = f"enqueuing a new run with {source} and with another key or none"
        super().__init__(
            run_id,
            event,
            status,
            allowed=(),
            reason=f"its payload was {gone} on {pruned_at:%Y-%m-%d}",
            instead=ONLY_ONCE if once else again,
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
    """A run has changed since the caller read it; `version` is its current version."""

    def __init__(self, run_id: int, version: str) -> None:
        self.run_id = run_id
        self.version = version
        super().__init__(
            f"run {run_id} has changed since you read it; its version is now {version}: read it again before you"
            " change it"
        )
