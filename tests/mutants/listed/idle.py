"""Mutants of definitions/idle.py."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TICKED = "ticked_at BETWEEN now() - interval '{SILENCE_SECONDS} seconds' AND clock_timestamp()"

IDLE = [
    *(
        Mutant(name, "shared/rowcall/definitions/idle.py", "IS_IDLE", stands, instead)
        for name, stands, instead in (
            ("`once` leaves due runs", "NOT EXISTS (SELECT FROM lanes WHERE run_at <= now())", "true"),
            ("later runs count as due", "FROM lanes WHERE run_at <= now()", "FROM lanes"),
            (
                "`once` leaves due schedules",
                "AND NOT EXISTS (SELECT FROM rowcall.job_definitions WHERE next_run_at <= now())",
                "",
            ),
            ("later schedules count as due", "WHERE next_run_at <= now()", "WHERE next_run_at IS NOT NULL"),
            ("`once` leaves pings", "ping_url IS NOT NULL", "false"),
            ("removed definitions have pings", " AND removed_at IS NULL", ""),
            ("`once` does not count failures", "AND NOT EXISTS ({NOT_COUNTED} AND ended_at < now() - {SETTLED})", ""),
            ("failures that are too new to be counted count as due", " AND ended_at < now() - {SETTLED}", ""),
            ("a gap without ticks is not logged", TICKED, "ticked_at <= now()"),
            ("a tick in the future is kept", TICKED, "ticked_at >= now() - interval '{SILENCE_SECONDS} seconds'"),
            ("the first tick is not recorded as such", " AND worker IS NOT NULL", ""),
            ("a visit during another one goes the usual way", "AND clock_timestamp()", "AND now()"),
            (
                "a deploy is not marked",
                "AND EXISTS (SELECT FROM rowcall.worker_versions WHERE version = %(version)s)",
                "",
            ),
            ("a declared limit has no row", "AND %(names)s::text[] <@ ARRAY", "AND '{{}}'::text[] <@ ARRAY"),
        )
    ),
    *(
        Mutant(name, "shared/rowcall/definitions/idle.py", "visit_idle", stands, instead)
        for name, stands, instead in (
            ("`once` goes on with a schema that does not fit", " or mismatch(Schema(**found))", ""),
            ("the visit counts as a working worker", '"stopped": True', '"stopped": False'),
        )
    ),
    Mutant(
        "the visits of earlier days stay",
        "shared/rowcall/definitions/idle.py",
        "VISIT",
        "forgotten AS ({FORGET}), ",
        "",
    ),
]
