"""The kinds of effects: for each, its table, its key, and what to do when an outcome is unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, Literal

from rowcall.base.errors import DeclarationError, EffectInvalid
from rowcall.base.redaction import storable
from rowcall.job_types.declaration import NAME

# Longer than any provider's reference; a longer one is truncated.
REFERENCE_CHARACTERS = 255


class Policy(StrEnum):
    """What to do when an earlier attempt began an effect and nobody knows whether it happened."""

    AT_MOST_ONCE = "at_most_once"  # do not repeat it: the run becomes dead, and an operator resolves the effect
    AT_LEAST_ONCE = "at_least_once"  # repeat it with the same id, by which the receiver recognizes repetitions
    PROVIDER_KEY = "provider_key"  # repeat it with the same key, as long as the provider remembers keys
    WITH_THE_RUN = "with_the_run"  # cannot happen: the transaction that finishes the run writes the effect


@dataclass(frozen=True)
class Table:
    """One table of the ledger, and the types of its key's columns.

    `known` columns are filled from the content when the effect begins, `learned` columns from the gateway's result.
    A `shared` table contains several kinds; its column `kind` is part of the unique key.
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
    """One kind of effect.  `horizon`: how many seconds the provider remembers keys, unless a setting says otherwise."""

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
    # Writing the same file again is harmless.
    (
        Policy.AT_LEAST_ONCE,
        Table("generated_files", {"type": str, "date": date, "key": str}, (), ("path", "sha256", "size_bytes")),
    ),
)

# The built-in kinds; each has the name of its table.
KINDS = {table.name: Kind(table.name, policy, table) for policy, table in _BUILT_IN}

TABLES = (*(kind.table for kind in KINDS.values()), OTHER_EFFECTS)

# The kinds that the app's imported modules declare.
_declared: dict[str, Kind] = {}


class EffectKind(Kind):
    """A kind of effect that an app declares; its key is a string, and its table is `rowcall.other_effects`.

    `policy` says what to do when an earlier attempt began the effect and nobody knows whether it happened.  The policy
    `provider_key` needs `horizon`: for how many seconds the provider answers a repeated key with the first answer.
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
            raise DeclarationError(f"effect kind {name!r}: Rowcall uses this name itself; choose another")
        if policy not in tuple(Policy):
            raise DeclarationError(f"effect kind {name!r}: policy is {policy!r} and must be one of {', '.join(Policy)}")
        if (policy == "provider_key") != (horizon is not None):
            raise DeclarationError(
                f"effect kind {name!r}: horizon, the seconds for which the provider remembers a key, must be set for"
                " the policy provider_key, and for no other"
            )
        if horizon is not None and not (isinstance(horizon, int | float) and 0 < horizon < math.inf):
            raise DeclarationError(f"effect kind {name!r}: horizon is {horizon!r} and must be seconds above 0")
        super().__init__(name, Policy(policy), OTHER_EFFECTS, horizon)
        if _declared.setdefault(name, self) != self:
            raise DeclarationError(
                f"effect kind {name!r} is declared twice, as {_told(_declared[name])} and as {_told(self)}; keep one"
            )


def _told(kind: Kind) -> str:
    return kind.policy if kind.horizon is None else f"{kind.policy} with the horizon {kind.horizon:g}"


@dataclass(frozen=True)
class Effect:
    """One effect in the ledger.

    `again` says that an earlier attempt may have performed it already.  `generation` is incremented by each permanent
    refusal, and when an operator records that the effect did not happen.  `refusal` is why it was refused, or why its
    outcome is unknown.
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
    refusal: str | None = None

    @property
    def idempotency_key(self) -> str:
        """The key to send to the provider: the same for every try of one generation."""
        return self.event_id if self.generation == 1 else f"{self.event_id}:{self.generation}"

    @property
    def event_id(self) -> str:
        """The id by which the receiver recognizes repetitions."""
        return "/".join(str(value) for value in self.key.values())

    @property
    def message_id(self) -> str:
        """The email's Message-ID: unique, and the same for every try."""
        return message_id(self.kind.name, self.id, self.intent_at)


def message_id(kind: str, effect_id: int, intent_at: datetime) -> str:
    """Return the Message-ID of an effect's email, which is known before the email is sent."""
    return f"<{kind}.{effect_id}.{intent_at.astimezone(UTC):%Y%m%d%H%M%S%f}@rowcall.invalid>"


def kind_of(kind: str | Kind) -> Kind:
    """Return the kind with this name; the error lists the known kinds."""
    if isinstance(kind, Kind):
        return kind
    known = KINDS | _declared
    if kind not in known:
        raise EffectInvalid(
            f"there is no effect kind {kind!r}; known kinds: {', '.join(known)}; declare another one as"
            ' EffectKind("sms", policy="at_most_once") in a module that your handlers import'
        )
    return known[kind]


def not_repeated() -> list[str]:
    """Return the known kinds whose effects are not repeated once an attempt has begun them."""
    return [name for name, kind in (KINDS | _declared).items() if kind.policy is Policy.AT_MOST_ONCE]


def table_of(kind: str) -> Table:
    """Return the table of this kind's effects; this process need not have the kind's declaration."""
    return KINDS[kind].table if kind in KINDS else OTHER_EFFECTS


def kept_reference(reference: str | None) -> str | None:
    """Make the provider's reference fit its column; do not redact it, because operators look up charges by it."""
    return None if reference is None else storable(reference)[:REFERENCE_CHARACTERS]


def effect_of(kind: Kind, row: Mapping[str, Any], again: bool = False) -> Effect:
    """Convert a row of the kind's table."""
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
        row["refusal"],
    )
