"""The kinds of effect: for each the table that holds them, the key that makes one unique, and what a gap means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from rowcall.base.errors import EffectInvalid
from rowcall.base.redaction import storable

# Longer than any provider's; the rest is noise, and a table is no place for it.
REFERENCE_CHARACTERS = 255


class Policy(StrEnum):
    """What to do when an earlier attempt began an effect and nobody knows whether it happened."""

    AT_MOST_ONCE = "at_most_once"  # not again: the run is given up, and an operator looks
    AT_LEAST_ONCE = "at_least_once"  # again under the same id: the receiver tells repetitions apart
    PROVIDER_KEY = "provider_key"  # again under the same key, for as long as the provider remembers keys
    WITH_THE_RUN = "with_the_run"  # there is no gap: the row is written in the transaction that finishes the run


@dataclass(frozen=True)
class Kind:
    """One kind of effect; its name is its table's.

    `known` are columns filled from the content when the effect begins, `learned` from what performing it answered.
    """

    name: str
    policy: Policy
    key: tuple[str, ...]
    known: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()


KINDS = {
    kind.name: kind
    for kind in (
        Kind("sent_emails", Policy.AT_MOST_ONCE, ("idempotency_key",), ("recipient", "subject"), ("message_id",)),
        Kind("sent_reports", Policy.WITH_THE_RUN, ("user_id", "week_start_date")),
        Kind("payments", Policy.PROVIDER_KEY, ("idempotency_key",), ("invoice_id", "amount_minor", "currency")),
        Kind("delivered_webhooks", Policy.AT_LEAST_ONCE, ("event_id",), ("url",), ("response_status",)),
        # Writing a file again replaces it by the same file.
        Kind(
            "generated_files",
            Policy.AT_LEAST_ONCE,
            ("type", "date", "key"),
            learned=("path", "sha256", "size_bytes"),
        ),
    )
}


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
        key = "/".join(str(value) for value in self.key.values())
        return key if self.generation == 1 else f"{key}:{self.generation}"

    @property
    def event_id(self) -> str:
        """The id by which the receiver tells repetitions from news."""
        return str(self.key["event_id"])

    @property
    def message_id(self) -> str:
        """The mail's Message-ID: the same however often it is tried, and no other mail's."""
        return f"<{self.kind.name}.{self.id}.{self.intent_at:%Y%m%d%H%M%S%f}@rowcall.invalid>"


def kind_of(name: str) -> Kind:
    """The kind of this name, or an error that lists those there are."""
    if name not in KINDS:
        raise EffectInvalid(f"there is no kind of effect {name!r}; there are: {', '.join(KINDS)}")
    return KINDS[name]


def policy_of(name: str) -> Policy:
    """The policy of this name, or an error that lists those there are."""
    try:
        return Policy(name)
    except ValueError:
        raise EffectInvalid(f"there is no policy {name!r}; there are: {', '.join(Policy)}") from None


def key_of(kind: Kind, key: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """The key by its columns; one text is enough where there is one column."""
    if not isinstance(key, str):
        return key
    if len(kind.key) > 1:
        raise EffectInvalid(f"the key of {kind.name} is made of {', '.join(kind.key)}: give a mapping of them")
    return {kind.key[0]: key}


def kept_reference(reference: str | None) -> str | None:
    """What the provider calls an effect, as a table keeps it; not redacted, because a charge is looked up by it."""
    return None if reference is None else storable(reference)[:REFERENCE_CHARACTERS]


def effect_of(kind: Kind, row: Mapping[str, Any], again: bool = False) -> Effect:
    """A row of the kind's table."""
    return Effect(
        kind,
        row["id"],
        {name: row[name] for name in kind.key},
        row["state"],
        row["run_id"],
        row["lease_no"],
        row["provider_reference"],
        row["generation"],
        row["intent_at"],
        row["applied_at"],
        {name: row[name] for name in (*kind.known, *kind.learned)},
        again,
    )
