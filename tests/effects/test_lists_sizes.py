"""A page of effects ends when it has enough bytes, and the next pages have the rest."""

from __future__ import annotations

from rowcall.base.database import PgConnection, fetch_all
from rowcall.effects import page_of_effects

FILL = """
INSERT INTO rowcall.{kind} ({key}, run_id, lease_no, content_hash, state, refusal, intent_at)
SELECT number, 1, 1, '', 'unknown', repeat('x', 1000), now() - number * interval '1 minute'
FROM generate_series(1, 4) AS number
"""


def test_pages_that_end_by_their_bytes_together_have_every_effect_once(connection: PgConnection) -> None:
    for kind, key in (("sent_emails", "idempotency_key"), ("delivered_webhooks", "event_id")):
        fetch_all(connection, FILL.format(kind=kind, key=key))
    seen: list[list[tuple[str, int]]] = []
    cursor: str | None = None
    while cursor or not seen:
        page = page_of_effects(connection, cursor=cursor, page_bytes=4000)
        seen.append([(row["kind"], row["id"]) for row in page.effects])
        cursor = page.next
    assert [len(names) for names in seen] == [3, 3, 2]
    assert len({name for names in seen for name in names}) == 8
    assert [len(page_of_effects(connection, page_bytes=size).effects) for size in (1, 1_000_000)] == [1, 8]
