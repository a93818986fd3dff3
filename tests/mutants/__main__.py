"""`make mutants`: remove the queue's guards one by one, and print which test failed."""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from rowcall.local_postgres.server import open_server
from rowcall.testing.server import UNSAFE_AND_FAST
from tests.conftest import SOURCE
from tests.mutants import remembered
from tests.mutants.copies import NONSENSE, Copies, TrialResult
from tests.mutants.listed import MUTANTS
from tests.mutants.mutant import QUEUE, Mutant

# Tests that fail fast and show best what is wrong come first.  The model catches nearly everything, and comes last.
FOLDER = "tests/queue/"
SENTENCES = (
    *(
        f"{FOLDER}database/test_{name}.py"
        for name in (
            "transitions",
            "locked_rows",
            "claim",
            "claim_ahead",
            "lanes",
            "limits",
            "sweep",
            "suspects",
            "stranded",
            "handover",
            "wake",
            "operate",
            "snooze",
            "cancel_requests",
            "enqueue",
            "enqueue_many",
            "sizes",
            "keys",
            "remembered_keys",
            "clone",
            "seen",
            "run_log",
        )
    ),
    f"{FOLDER}operations/test_batches.py",
    f"{FOLDER}operations/test_steering.py",
    f"{FOLDER}races/test_archive.py",
    f"{FOLDER}races/test_enqueue.py",
    f"{FOLDER}races/test_keys.py",
    f"{FOLDER}races/test_remembered_keys.py",
    *(
        f"{FOLDER}retention/test_{name}.py"
        for name in ("prune", "prune_walks", "prune_policies", "archive", "archive_table", "archive_export", "erase")
    ),
    f"{FOLDER}views/test_created.py",
    f"{FOLDER}views/test_handed_over.py",
    f"{FOLDER}views/test_workers.py",
    f"{FOLDER}failures/test_count.py",
    "tests/worker/test_sleep.py",
    "tests/definitions/test_tick.py",
    "tests/definitions/test_tick_runs.py",
    "tests/definitions/test_erase.py",
    "tests/definitions/test_idle.py",
    "tests/definitions/test_broken.py",
    "tests/alerts/test_incidents.py",
    "tests/alerts/test_conditions.py",
    "tests/alerts/test_pings.py",
    "tests/core/unit/test_plain_payloads.py",
)
MODEL = f"{FOLDER}model/test_model.py"

# Files whose tests have another name.
OWN_TESTS = {
    "archive": "archive_table",
    "claim_limited": "limits",
    "holders": "remembered_keys",
    "insert": "remembered_keys",
    "export": "archive_export",
    "fingerprint": "remembered_keys",
    "keyless": "enqueue_many",
    "lists": "archive_table",
    "plain": "plain_payloads",
    "sleepers": "sleep",
    "actions": "batches",
    "attempts": "count",
    "batch": "batches",
    "carry_out": "steering",
    "fragments": "operate",
    "steer": "batches",
    "timestamps": "enqueue",
}

# A mutant that causes a deadlock must not wait for ever.
OPTIONS = {**UNSAFE_AND_FAST, "lock_timeout": "10s"}


@click.command()
@click.option("--model-only", is_flag=True, help="Run only the model-based test.")
@click.option("--only", default="", metavar="TEXT", help="Only mutants with this in their name, file or place.")
@click.option("--jobs", default=2, show_default=True, help="The number of mutants at a time.")
@click.option("--remember", is_flag=True, help="Write to tests/mutants/caught_by.json which test failed.")
def main(model_only: bool, only: str, jobs: int, remember: bool) -> None:
    """Remove the queue's guards one by one, and print which test failed; exit 1 if no test failed for one of them.

    The test that failed the last time is run first, alone, and the others only if it passes.
    """
    began = time.monotonic()
    chosen = [mutant for mutant in MUTANTS if only in f"{mutant.name} {mutant.file} {mutant.place}"]
    if not chosen:
        places = ", ".join(dict.fromkeys(f"{mutant.file.removeprefix(QUEUE)} {mutant.place}" for mutant in MUTANTS))
        raise click.UsageError(f"no mutant has {only!r} in its name, file or place; mutants exist for: {places}")
    known = {} if model_only else remembered.read()
    with tempfile.TemporaryDirectory() as name, open_server(Path(name) / "server", SOURCE, options=OPTIONS):
        copies = Copies(Path(name), Path(name) / "server", jobs)
        sound = copies.try_out(None, [tests_for(None, model_only)])
        if sound.test:
            raise click.ClickException(f"{sound.test} fails without any mutant: {sound.reason}")

        def tried(mutant: Mutant) -> TrialResult:
            first = known.get(remembered.key_of(mutant))
            every = tests_for(mutant, model_only)
            return copies.try_out(mutant, [every] if first is None else [(first,), every])

        with ThreadPoolExecutor(max_workers=jobs) as trials:
            results = trials.map(tried, chosen)
            caught = {
                mutant: result.test
                for mutant, result in zip(chosen, results, strict=True)
                if shown(mutant, result) and result.test
            }
    if remember:
        remembered.write({**known, **{remembered.key_of(mutant): test for mutant, test in caught.items()}})
    left = [mutant for mutant in chosen if mutant not in caught]
    # Once more at the end, because a long output is often cut to its last lines.
    for mutant in left:
        click.echo(f"NOT CAUGHT: {mutant.file} {mutant.place}: {mutant.name}")
    click.echo(f"{len(caught)} of {len(chosen)} mutants were caught, in {time.monotonic() - began:.0f} s")
    sys.exit(bool(left))


def tests_for(mutant: Mutant | None, model_only: bool) -> tuple[str, ...]:
    """Return the tests in the order in which to run them: those of the mutant's own file first."""
    if model_only:
        return (MODEL,)
    own = OWN_TESTS.get(Path(mutant.file).stem, Path(mutant.file).stem) if mutant else ""
    return (*sorted(SENTENCES, key=lambda name: Path(name).stem != f"test_{own}"), MODEL)


def shown(mutant: Mutant, result: TrialResult) -> bool:
    """Print a line, and return whether the mutant was caught and is not nonsense."""
    if result.test is None:
        who = "SURVIVED"
    elif NONSENSE.search(result.reason):
        who = f"NONSENSE: {result.reason}"
    else:
        who = result.test.removeprefix(FOLDER)
    file = mutant.file.removeprefix(QUEUE).removeprefix("shared/rowcall/")
    click.echo(f"{file:11} {mutant.name:58} {result.seconds:5.1f} s  {who}")
    return result.test is not None and not NONSENSE.search(result.reason)


if __name__ == "__main__":
    main()
