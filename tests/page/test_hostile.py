"""Hostile text in every field: each screen shows it as text, and nothing breaks out of an element or an attribute."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_value
from rowcall.queue import Filter
from tests.page.conftest import Browse
from tests.page.filled import Filled, fill
from tests.page.hostile import HOSTILE, hostile
from tests.page.visits import Screen

# The hostile texts contain these, and no template does.
FOREIGN = {"img", "style", "iframe", "object", "embed", "base"}

# The address of each screen with filters.
ASKED = {
    "/runs": (*Filter.__dataclass_fields__, "cursor", "order"),
    "/effects": ("kind", "state", "cursor", "find", "key", "recipient", "reference"),
    "/failures": ("job_type", "queue"),
    "/audit": ("who", "action", "subject", "subject_id", "cursor"),
    "/workers": ("stopped", "cursor"),
    "/operations": ("cursor",),
    "/definitions": ("cursor",),
    "/queues": ("cursor",),
    "/keys": ("cursor",),
    "": ("range", "done"),
    "/sign-in": ("to",),
    "/find": ("q",),
}


@pytest.fixture(scope="module")
def filled(module_url: str) -> Filled:
    """Fill the database with hostile text."""
    with database.transaction(module_url) as connection:
        return fill(connection, hostile)


@pytest.mark.parametrize("scope", ["admin", "operate"])
def test_every_screen_shows_hostile_text_as_text(browse: Browse, filled: Filled, scope: str) -> None:
    visit = browse(scope)
    shown = set()
    for name, path in filled.screens.items():
        screen = visit.get(path)
        if screen.status < 400:
            is_inert(screen)
            shown |= {name} if "<script>" in screen.text else set()
    # These show texts of apps and users to such a key.
    expected = {
        "admin": {"overview", "run", "run-retrying", "run-running", "run-succeeded", "runs", "effects", "effect"}
        | {"failures", "workers", "operations", "operation", "audit"},
        "operate": set(),
    }[scope]
    assert expected <= shown


@pytest.mark.parametrize("path", ASKED)
def test_hostile_text_in_an_address_stays_text(browse: Browse, filled: Filled, path: str) -> None:
    admin, names = browse("admin"), ASKED[path]
    texts = (*HOSTILE, "javascript:window.hit=1", "//elsewhere.example", "x" * 3000)
    together = [dict.fromkeys(names, text) for text in texts]
    alone = [{name: "".join(HOSTILE)} for name in names]
    for asked in together + alone:
        screen = admin.get(f"{path}?{urlencode(asked)}")
        assert screen.status < 500, (asked, screen.text)
        is_inert(screen)


@pytest.mark.parametrize("path", ["/runs/{}", "/queues/{}", "/definitions/{}", "/effects/{}/1", "/{}", "/static/{}"])
def test_hostile_text_in_a_path_stays_text(browse: Browse, filled: Filled, path: str) -> None:
    for text in HOSTILE:
        screen = browse("read").get(path.format(text))
        assert screen.status in {200, 404}, screen.text
        is_inert(screen)


def test_hostile_text_in_a_form_is_refused_or_shown_as_text(browse: Browse, filled: Filled) -> None:
    operator, admin = browse("operator"), browse("admin")
    for text in HOSTILE:
        for screen in (
            operator.send(f"/runs/{filled.dead}", "Enqueue the copy", payload=text),
            operator.send(f"/queues/{filled.queue}", "Set the limit", max_running=text),
            operator.post(f"/runs/{filled.waiting}/run-now", version=text),
            operator.post(f"/runs/{filled.waiting}/cancel", reason=text, version=text),
            operator.post(f"/effects/payments/{filled.effect[1]}/resolve", happened=text),
            operator.post(f"/definitions/{filled.definition}/pause", version=text),
            operator.post("/runs/1/retry", csrf=text),
            operator.post("/operations/new/retry?status=dead", reason=text, once=text),
            admin.send("/keys", "Create the key", name=text, scope=["read"]),
            admin.send("/keys", "Create the key", name="ok", scope=[text]),
            admin.post("/sign-in", key=text, to=text),
        ):
            assert screen.status < 500, screen.text
            is_inert(screen)


def test_json_shows_what_cannot_be_seen_and_a_copy_keeps_it(
    browse: Browse, committed: PgConnection, filled: Filled
) -> None:
    payload = {"name": "a\u202eb\u2066c\x85d\u2028e\x1b", "family": "\U0001f468\u200d\U0001f469"}
    first = queue.enqueue(committed, "noop", payload)
    operator = browse()
    screen = operator.get(f"/runs/{first.run_id}")
    assert r"a\u202eb\u2066c\u0085d\u2028e\u001b" in screen.text
    assert payload["family"] in screen.text
    copy = operator.send(f"/runs/{first.run_id}", "Enqueue the copy")
    copied = "SELECT array_agg(payload ORDER BY id DESC) FROM rowcall.job_runs WHERE job_type = 'noop'"
    assert (copy.status, fetch_value(committed, copied)) == (200, [payload, payload])


def is_inert(screen: Screen) -> None:
    """Assert that the screen has no element and no attribute of the hostile texts, and no address of elsewhere."""
    reader = Reader()
    reader.feed(screen.html)
    reader.close()
    assert reader.wrong == [], (screen.address, reader.wrong)


class Reader(HTMLParser):
    """Finds what no template contains."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element or an attribute that no template has."""
        self.wrong += [f"<{tag}>"] if tag in FOREIGN else []
        self.wrong += ["a script of its own"] if tag == "script" and not dict(attrs).get("src") else []
        self.wrong += [f"{tag} {name}={value}" for name, value in attrs if not harmless(name, value or "")]


def harmless(name: str, value: str) -> bool:
    """Whether an attribute can neither run a script nor lead elsewhere."""
    if name in {"href", "src", "action"}:
        return value.startswith(("/admin", "#"))
    return not name.startswith("on") and name not in {"style", "srcdoc", "formaction", "srcset"} and name.isprintable()
