"""Whether runs can be handed over: the broker answers, and has the queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pkgutil import resolve_name

from rowcall.base.errors import SettingsError, message_of
from rowcall.base.errors.sentences import one_line
from rowcall.base.redaction import redacted
from rowcall.base.settings import Settings
from rowcall.cli.doctor.finding import Finding
from rowcall.job_types.catalogue import Catalogue


def handover(catalogue: Catalogue, settings: Settings) -> Iterator[Finding]:
    """Check the broker if a job type hands its runs over."""
    try:
        publisher = resolve_name("rowcall_worker.runtime.handover.publisher:publisher_for")(catalogue, {}, settings)
    except ModuleNotFoundError:
        return  # the finding about handlers says what is not installed
    except SettingsError as error:
        yield Finding("hand-over", False, str(error))
        return
    if publisher is None:
        return
    try:
        consumers = publisher.consumers()
    except Exception as error:
        why = redacted(one_line(message_of(error)))
        yield Finding(
            "hand-over",
            False,
            f"the broker {publisher.broker} does not answer ({type(error).__name__}: {why}), so runs that are handed"
            " over wait: start it, or correct ROWCALL_BROKER_URL",
        )
        return
    yield _queues(f"the broker {publisher.broker}", publisher.queues, consumers)


def _queues(broker: str, queues: Sequence[str], consumers: Mapping[str, int | None] | None) -> Finding:
    """Check that Celery's workers serve the queues."""
    listed = ", ".join(queues)
    if consumers is None:
        checked = "this kind of broker takes any name, so whether they are right was not checked"
        return Finding("hand-over", True, f"{broker} answers; queues: {listed}; {checked}")
    for wrong, amount in (("has no queue", None), ("has no consumer for queue", 0)):
        if found := [queue for queue in queues if consumers[queue] == amount]:
            start = f"start a Celery worker (`celery worker --queues {','.join(found)}`)"
            return Finding(
                "hand-over",
                False,
                f"{broker} {wrong} {', '.join(found)}: {start}, or correct the queue in celery(...)",
            )
    return Finding("hand-over", True, f"{broker} answers; queues, all with consumers: {listed}")
