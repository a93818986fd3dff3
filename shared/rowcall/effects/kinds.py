"""The kinds of effect: for each the table that holds them, the key that makes one unique, and what a gap means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal

from rowcall.base.errors import DeclarationError, EffectInvalid
from rowcall.base.redaction import storable
from rowcall.job_types.declaration import NAME

# Longer than any provider's reference; the rest is cut off.
REFERENCE_CHARACTERS = 255


class Policy(StrEnum):
    """What to do when an earlier attempt began an effect and nobody knows whether it happened."""

    AT_MOST_ONCE = "at_most_once"  # not again: the run is given up, and an operator looks
    AT_LEAST_ONCE = "at_least_once"  # again under the same id: the receiver tells repetitions apart
    PROVIDER_KEY = "provider_key"  # again under the same key, for as long as the provider remembers keys
    WITH_THE_RUN = "with_the_run"  # there is no gap: the row is written in the transaction that finishes the run


@dataclass(frozen=True)
class Table:
    """One table of the ledger, and the columns of its key with what they hold.

    `known` are columns filled from the content when the effect begins, `learned` from what performing it answered.
    A `shared` table holds several kinds: its column `kind` belongs to the key, and no author writes it.
    """

    name: str
    key: Mapping[str, type]
    known: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    shared: bool = False

    @property
    def unique(self) -> tuple[str, ...]:
        """The columns of the unique constraint."""
        return ("kind", *self.key) if self.shared else tuple(self.key)


@dataclass(frozen=True)
class Kind:
    """One kind of effect.  `horizon` is how many seconds its provider remembers keys, where only the code knows."""

    name: str
    policy: Policy
    table: Table
    horizon: float | None = None


OTHER_EFFECTS = Table("other_effects", {"key": str}, shared=True)

_BUILT_IN = (
    (
        Policy.AT_MOST_ONCE,
        Table("sent_emails", {"idempotency_key": str}, ("recipient", "subject"), ("message_id",)),
    ),
    (Policy.WITH_THE_RUN, Table("sent_reports", {"user_id": int, "week_start_date": date})),
    (Policy.PROVIDER_KEY, Table("payments", {"idempotency_key": str}, ("invoice_id", "amount_minor", "currency"))),
    (Policy.AT_LEAST_ONCE, Table("delivered_webhooks", {"event_id": str}, ("url",), ("response_status",))),
    # Writing a file again replaces it by the same file.
    (
        Policy.AT_LEAST_ONCE,
        Table("generated_files", {"type": str, "date": date, "key": str}, (), ("path", "sha256", "size_bytes")),
    ),
)

# The built-in kinds; each has a table of its name.
KINDS = {table.name: Kind(table.name, policy, table) for policy, table in _BUILT_IN}

TABLES = (*(kind.table for kind in KINDS.values()), OTHER_EFFECTS)

# Those that the app declares, as far as its modules are imported.
_declared: dict[str, Kind] = {}


class EffectKind(Kind):
    """A kind of effect that an app declares; `key` is one text, and the effects are in `rowcall.other_effects`.

    `policy` is what happens when an earlier attempt began the effect and nobody knows whether it happened.  The policy
    `provider_key` needs `horizon`: for how many seconds the provider answers a repeated key as it did the first time.
    """

    def __init__(
        self,
        name: str,
        *,
        policy: Literal["at_most_once", "at_least_once", "provider_key", "with_the_run"],
        horizon: float | None = None,
    ) -> None:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise DeclarationError(f"effect kind {name!r}: name must be lower-case words such as sms")
        if name in {table.name for table in TABLES}:
            raise DeclarationError(f"effect kind {name!r}: Rowcall has this name for itself; choose another")
        if policy not in tuple(Policy):
            raise DeclarationError(f"effect kind {name!r}: policy is {policy!r} and must be one of {', '.join(Policy)}")
        if (policy == "provider_key") != (horizon is not None):
            raise DeclarationError(
                f"effect kind {name!r}: horizon, the seconds for which the provider remembers a key, goes with the"
                " policy provider_key, which needs it"
            )
        if horizon is not None and not (isinstance(horizon, int | float) and 0 < horizon < math.inf):
            raise DeclarationError(f"effect kind {name!r}: horizon is {horizon!r} and must be seconds above 0")
        super().__init__(name, Policy(policy), OTHER_EFFECTS, horizon)
        if _declared.setdefault(name, self) != self:
            raise DeclarationError(
                f"effect kind {name!r} is declared twice, with the policies {_declared[name].policy} and {policy}, or"
                " with two horizons; keep one"
            )


@dataclass(frozen=True)
class Effect:
    """One effect as the ledger has it.

    `again` says that an earlier attempt may have performed it already; `generation` counts what the provider refused
    for good and was then begun anew.
    """

    kind: Kind
    id: int
    key: Mapping[str, Any]
    state: str
    run_id: int
    lease_no: int
    reference: str | None
    generation: int
    intent_at: datetime
    applied_at: datetime | None
    details: Mapping[str, Any]
    again: bool = False

    @property
    def idempotency_key(self) -> str:
        """The key to send along: the same for every try of one generation."""
        return self.event_id if self.generation == 1 else f"{self.event_id}:{self.generation}"

    @property
    def event_id(self) -> str:
        """The id by which the receiver tells repetitions from news."""
        return "/".join(str(value) for value in self.key.values())

    @property
    def message_id(self) -> str:
        """The mail's Message-ID: the same however often it is tried, and no other mail's."""
        return f"<{self.kind.name}.{self.id}.{self.intent_at:%Y%m%d%H%M%S%f}@rowcall.invalid>"


def kind_of(kind: str | Kind) -> Kind:
    """The kind of this name, or an error that lists those there are."""
    if isinstance(kind, Kind):
        return kind
    known = KINDS | _declared
    if kind not in known:
        raise EffectInvalid(
            f"there is no kind of effect {kind!r}; there are: {', '.join(known)}.  Declare another one as"
            ' EffectKind("sms", policy="at_most_once") in a module that your handlers import'
        )
    return known[kind]


def table_of(kind: str) -> Table:
    """The table that holds the effects of this kind, whether or not this process has its declaration."""
    return KINDS[kind].table if kind in KINDS else OTHER_EFFECTS


def kept_reference(reference: str | None) -> str | None:
    """What the provider calls an effect, as a table keeps it; not redacted, because a charge is looked up by it."""
    return None if reference is None else storable(reference)[:REFERENCE_CHARACTERS]


def effect_of(kind: Kind, row: Mapping[str, Any], again: bool = False) -> Effect:
    """A row of the kind's table."""
    return Effect(
        kind,
        row["id"],
        {name: row[name] for name in kind.table.key},
        row["state"],
        row["run_id"],
        row["lease_no"],
        row["provider_reference"],
        row["generation"],
        row["intent_at"],
        row["applied_at"],
        {name: row[name] for name in (*kind.table.known, *kind.table.learned)},
        again,
    )
