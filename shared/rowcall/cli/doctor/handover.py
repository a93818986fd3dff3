"""Whether runs can be handed over: the broker answers, and has the queues."""

from __future__ import annotations

from collections.abc import Iterator
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
        missing = publisher.missing_queues()
    except Exception as error:
        why = redacted(one_line(message_of(error)))
        yield Finding(
            "hand-over",
            False,
            f"the broker {publisher.broker} does not answer ({type(error).__name__}: {why}), so runs that are handed"
            " over wait: start it, or correct ROWCALL_BROKER_URL",
        )
        return
    if missing:
        them = "it" if len(missing) == 1 else "them"
        yield Finding(
            "hand-over",
            False,
            f"the broker {publisher.broker} has no queue {', '.join(missing)}: start a Celery worker that declares"
            f" {them} (`celery worker --queues {','.join(missing)}`), or correct the queue in celery(...)",
        )
        return
    yield Finding("hand-over", True, f"the broker {publisher.broker} answers; queues: {', '.join(publisher.queues)}")
