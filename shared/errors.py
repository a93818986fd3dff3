"""Every error Rowcall raises on purpose.  Its text says what was wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal


class RowcallError(Exception):
    """What a person is shown as one sentence, never as a traceback."""

    exit_code = 1


class SettingsError(RowcallError):
    """One or more environment variables hold a value that Rowcall cannot use."""

    exit_code = 2


class DatabaseUnreachable(RowcallError):
    """No connection could be made, or the connection that was there is gone."""

    exit_code = 3


class EmbeddedServerError(DatabaseUnreachable):
    """The embedded PostgreSQL could not be found, made, started or stopped."""


class PortInUse(RowcallError):
    """A port that was asked for by number is taken."""


class SchemaMismatch(RowcallError):
    """The database's schema is not the one this code was written for."""


class DeclarationError(RowcallError):
    """A job type or a handler is declared wrongly; found when the program starts."""


class JobTypeUnknown(RowcallError):
    """A run was asked for whose job type is in no catalogue."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"there is no job type {name!r}; known here: {', '.join(self.known)}")


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


class ScheduleInvalid(RowcallError):
    """A schedule, or what goes with it, cannot be used; `field` names the part that is wrong, where it is one part."""

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


class KeyConflict(RowcallError):
    """An idempotency key was sent again with other content."""

    def __init__(self, key: str, run_id: int) -> None:
        self.key = key
        self.run_id = run_id
        super().__init__(
            f"the idempotency key {key!r} belongs to run {run_id}, which was asked for with other content;"
            " send the same content, or another key"
        )


class DemoRefused(RowcallError):
    """The demo was to be added to a database that is in use."""

    def __init__(self, domain: str) -> None:
        super().__init__(
            f"this database has users that are not the demo's (theirs end in @{domain}), and the demo's orders and"
            " invoices would count among theirs: set DATABASE_URL to a database without them"
        )


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
    """A run was to be done again of which only the bare row is left."""

    def __init__(self, run_id: int, event: str, status: str, pruned_at: datetime) -> None:
        super().__init__(
            run_id,
            event,
            status,
            allowed=(),
            reason=f"its payload was pruned on {pruned_at:%Y-%m-%d}",
            instead="to enqueue its payload anew, without a key or under another one",
        )


class RunChanged(RowcallError):
    """A run is not any more as the caller saw it; `version` is what it is now."""

    def __init__(self, run_id: int, version: str) -> None:
        self.run_id = run_id
        self.version = version
        super().__init__(
            f"run {run_id} has changed since you saw it, and is {version} now: look at it again, and decide anew"
        )


class LeaseLost(RowcallError):
    """This worker's right to the run is over; whatever it does now must not count."""

    def __init__(self, run_id: int, lease_no: int) -> None:
        self.run_id = run_id
        self.lease_no = lease_no
        super().__init__(f"lease {lease_no} of run {run_id} is over: another worker or an admin has the run now")


class CancelRequested(RowcallError):
    """An admin asked for this run to be cancelled; raised by `run.check()`, and best let through."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"run {run_id} was asked to be cancelled")


class TimeLimitExceeded(RowcallError):
    """The handler took longer than its job type allows."""

    def __init__(self, job_type: str, seconds: float) -> None:
        super().__init__(
            f"the handler of {job_type} took longer than its limit of {seconds:g} seconds; raise the type's"
            " time_limit, or let the handler do less at a time"
        )


class MemoryCapExceeded(RowcallError):
    """The handler needed more memory than its job type allows."""

    def __init__(self, job_type: str, mebibytes: int) -> None:
        super().__init__(
            f"the handler of {job_type} needed more memory than its cap of {mebibytes} MiB; raise the type's"
            " memory_cap, or let the handler hold less at a time"
        )


class ChildDied(RowcallError):
    """The child process of an isolated run ended without an answer; `kind` is the name of the signal, or Exit."""

    def __init__(self, run_id: int, code: int, signal_name: str = "") -> None:
        self.kind = signal_name or "Exit"
        child = f"the child process of run {run_id}"
        if not signal_name:
            super().__init__(f"{child} ended with exit code {code} and no answer: a handler must return or raise")
        elif signal_name == "SIGKILL":
            super().__init__(f"{child} was ended by SIGKILL; no worker sent it, so the machine may be short of memory")
        else:
            super().__init__(f"{child} was ended by {signal_name}; what is known of that stands with the attempt")


class NoChild(RowcallError):
    """There is no child process for an isolated run, or nothing is known of it any more."""

    def __init__(self, run_id: int, reason: str) -> None:
        super().__init__(f"run {run_id} has no child process: {reason}")


class Retry(RowcallError):
    """Raised by a handler: this attempt failed, try again after so many seconds (default: the type's backoff)."""

    def __init__(self, reason: str = "the handler asked to be tried again", after: float | None = None) -> None:
        self.after = None if after is None else float(after)
        super().__init__(reason)


class Permanent(RowcallError):
    """Raised by a handler: trying again cannot help, so the run is given up at once."""


class UserNotFound(Permanent):
    """No user has this id."""

    def __init__(self, user_id: int) -> None:
        super().__init__(f"there is no user {user_id}; correct user_id")


class TimeZoneUnknown(Permanent):
    """A user's time zone is none that PostgreSQL knows."""

    def __init__(self, user_id: int, time_zone: str) -> None:
        super().__init__(
            f"user {user_id} has the time zone {time_zone!r}, which PostgreSQL does not know; set users.time_zone to a"
            " name of pg_timezone_names, such as Europe/Berlin, and retry the run"
        )


class InvoiceNotFound(Permanent):
    """No invoice has this id."""

    def __init__(self, invoice_id: int) -> None:
        super().__init__(f"there is no invoice {invoice_id}; correct invoice_id")


class CacheNameUnknown(Permanent):
    """A value was asked for that nothing computes."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"nothing computes a cache entry {name!r}; known: {', '.join(known)}")


class Snooze(RowcallError):
    """Raised by a handler: not now; the run waits until then, and its attempt is not held against it."""

    def __init__(self, until: datetime, reason: str = "the handler asked to wait") -> None:
        if until.tzinfo is None:
            raise ValueError(f"Snooze(until={until!r}) needs a time with an offset, such as datetime.now(UTC)")
        self.until = until
        super().__init__(reason)


class GatewayError(RowcallError):
    """What was asked of the outside was not done, or nobody knows whether it was.

    `acted` tells which, of this one request: after "no" it is certain that nothing happened, so that the request may
    simply be made again; after "maybe" it may have been carried out.  It cannot speak of earlier requests under the
    same key: what one "maybe" has left open, a later "no" does not close.  Every class below is also a Retry or a
    Permanent, so a handler lets them through as they are.
    """

    acted: Literal["no", "maybe"] = "no"
    after: float | None = None

    @property
    def permanent(self) -> bool:
        """Whether trying again cannot help."""
        return isinstance(self, Permanent)


class Unavailable(GatewayError, Retry):
    """Not now: the other side was not reached, or said so itself.  Nothing happened."""


class OutcomeUnknown(GatewayError, Retry):
    """The request was sent and no answer tells what became of it.  It may have been carried out."""

    acted = "maybe"


class Refused(GatewayError, Permanent):
    """The other side will not do it, now or later.  Nothing happened."""


class Unusable(Refused):
    """What a gateway was given breaks a rule, and nothing of it left this machine."""


class NotConfigured(Refused):
    """A gateway was used whose settings are not set."""


class Blocked(Refused):
    """A webhook's address is one that nobody outside may make this machine speak to."""


class Declined(Refused):
    """The payment was declined; no money moved."""


class WrongCharge(GatewayError, Permanent):
    """Money moved, and not as it was asked.  Somebody must look at it."""

    acted = "maybe"


class KeyReused(GatewayError, Permanent):
    """The provider knows the idempotency key from a request with other content, which may have been carried out."""

    acted = "maybe"


class EffectInvalid(RowcallError):
    """An effect was asked for, or is to be resolved, in a way that cannot be."""


class EffectNotFound(EffectInvalid):
    """No effect of this kind has this id."""

    def __init__(self, kind: str, effect_id: int) -> None:
        super().__init__(f"there is no effect {effect_id} of {kind}; `rowcall effects list` shows those that are")


class EffectNotOpen(EffectInvalid):
    """An effect is to be resolved of which nobody needs to be asked, or not now; `state` is the one it is in."""

    def __init__(self, state: str, sentence: str) -> None:
        self.state = state
        super().__init__(sentence)


class EffectConflict(Permanent):
    """An effect's key was used again for other content."""


class AmbiguousEffect(Permanent):
    """An effect may have happened, nobody knows, and it must not be tried again; an operator resolves it."""


def _sentence(wrong: object) -> str:
    """What is wrong with a field, as words: marshmallow nests lists and mappings."""
    if isinstance(wrong, Mapping):
        return ", ".join(f"{name}: {_sentence(inner)}" for name, inner in wrong.items())
    if isinstance(wrong, (list, tuple)):
        return " ".join(_sentence(inner) for inner in wrong)
    return str(wrong)
