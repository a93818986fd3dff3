"""External side effects of runs, recorded so that each happens once even if its run is retried.

All functions take the caller's connection first, run in its transaction, and never commit.
"""

from rowcall.effects.explain import explain_with_effects
from rowcall.effects.find import Found, find_effects
from rowcall.effects.keys import key_of
from rowcall.effects.kinds import KINDS, TABLES, Effect, EffectKind, Kind, Policy, kind_of
from rowcall.effects.ledger import Decision, applied, begin, failed, hold, record
from rowcall.effects.lists import (
    Page,
    count_unknown,
    list_effects,
    page_of_effects,
    show_effect,
    unresolved_effects,
    unresolved_runs,
)
from rowcall.effects.operate import STATES, effects_of, lock_effect, resolvable, resolve

__all__ = [
    "KINDS",
    "STATES",
    "TABLES",
    "Decision",
    "Effect",
    "EffectKind",
    "Found",
    "Kind",
    "Page",
    "Policy",
    "applied",
    "begin",
    "count_unknown",
    "effects_of",
    "explain_with_effects",
    "failed",
    "find_effects",
    "hold",
    "key_of",
    "kind_of",
    "list_effects",
    "lock_effect",
    "page_of_effects",
    "record",
    "resolvable",
    "resolve",
    "show_effect",
    "unresolved_effects",
    "unresolved_runs",
]
