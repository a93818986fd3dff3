"""An operator at the page, without a browser: signs in, reads screens, and sends their forms by the button's text."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import flask
from werkzeug.test import TestResponse

HOST = "localhost"
ORIGIN = {"Origin": f"http://{HOST}"}

# What a reader does not see as text.
UNSEEN = re.compile(r"<(script|style|title)\b.*?</\1>|<[^>]*>", re.DOTALL)


@dataclass
class Form:
    """A form of a screen: where it goes, what it sends as it stands, and the text of its button."""

    action: str
    method: str
    fields: dict[str, list[str]] = field(default_factory=dict)
    button: str = ""


@dataclass(frozen=True)
class Screen:
    """What an operator sees."""

    response: TestResponse

    @property
    def status(self) -> int:
        """Return the status of the response."""
        return self.response.status_code

    @property
    def html(self) -> str:
        """Return the source."""
        return self.response.text

    @property
    def text(self) -> str:
        """Return what can be read, with one space between words."""
        return " ".join(html.unescape(UNSEEN.sub(" ", self.html)).split())

    @property
    def address(self) -> str:
        """Return the path and the query of this screen."""
        asked = self.response.request
        query = asked.query_string.decode()
        return f"{asked.path}?{query}" if query else asked.path

    @property
    def forms(self) -> dict[str, Form]:
        """Return the forms that have a button, by its text."""
        reader = _Forms()
        reader.feed(self.html)
        return {one.button: one for one in reader.found if one.button}

    @property
    def links(self) -> list[str]:
        """Return where the links lead."""
        return [html.unescape(href) for href in re.findall(r'<a\b[^>]*\bhref="([^"]*)"', self.html)]


class Visit:
    """A session on the page with one key; paths are written without /admin."""

    def __init__(self, app: flask.Flask, key: str) -> None:
        self.client = app.test_client()
        self._csrf = ""
        begun = self.client.post("/admin/sign-in", data={"key": key}, headers=ORIGIN, base_url=f"http://{HOST}")
        assert begun.status_code == 303, begun.text

    def get(self, path: str = "", **query: Any) -> Screen:
        """Load a screen, following redirects."""
        return self._seen("GET", _full(path), query_string=query or None)

    def send(self, path: str, button: str, **values: str | list[str]) -> Screen:
        """Load a screen, fill in the form with this button, send it, and return the screen to which it leads."""
        screen = self.get(path)
        assert screen.status == 200, screen.text
        assert button in screen.forms, f"no button {button!r} among {sorted(screen.forms)}"
        return self.submit(screen.forms[button], **values)

    def submit(self, form: Form, **values: str | list[str]) -> Screen:
        """Send a form of a screen that was loaded before, perhaps long ago."""
        data = {**form.fields, **values}
        if form.method == "get":
            return self._seen("GET", form.action, query_string=data)
        return self._seen("POST", form.action, data=data)

    def post(self, path: str, csrf: str | None = None, **values: str | list[str]) -> Screen:
        """Send these values to an address, with the session's own token unless another one is given."""
        return self._seen("POST", _full(path), data={"csrf": self.csrf if csrf is None else csrf, **values})

    @property
    def csrf(self) -> str:
        """Return the token that each form of the session contains."""
        if not self._csrf:
            [form] = [one for one in self.get("/nowhere").forms.values() if one.action == "/admin/sign-out"]
            self._csrf = form.fields["csrf"][0]
        return self._csrf

    def _seen(self, method: str, path: str, **options: Any) -> Screen:
        headers = ORIGIN if method == "POST" else {}
        response = self.client.open(
            path, method=method, headers=headers, base_url=f"http://{HOST}", follow_redirects=True, **options
        )
        return Screen(response)


def sign_in(app: flask.Flask, base: str = f"http://{HOST}", **options: Any) -> TestResponse:
    """Send the form of the sign-in screen."""
    headers = {"Origin": base, **options.pop("headers", {})}
    return app.test_client().post("/admin/sign-in", base_url=base, headers=headers, **options)


def _full(path: str) -> str:
    return path if path.startswith("/admin") else f"/admin{path}"


class _Forms(HTMLParser):
    """Reads the forms of a screen, with what a browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._form: Form | None = None
        self._inside: list[str] = []  # the name of an open select or textarea, or "" of a button
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a form, or note a field."""
        has = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = Form(has.get("action", ""), has.get("method", "get"))
            self.found.append(self._form)
        elif self._form is None:
            return
        elif tag == "input":
            self._input(has)
        elif tag in {"select", "textarea", "button"}:
            self._inside.append(has.get("name", ""))
            self._text = ""
        elif tag == "option" and self._inside and ("selected" in has or self._inside[-1] not in self._form.fields):
            self._form.fields[self._inside[-1]] = [has.get("value", "")]

    def _input(self, has: dict[str, str]) -> None:
        assert self._form is not None
        if has.get("type") in {"checkbox", "radio"} and "checked" not in has:
            return
        if name := has.get("name"):
            self._form.fields.setdefault(name, []).append(has.get("value", ""))

    def handle_data(self, data: str) -> None:
        """Collect the text of a button or a textarea."""
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        """End a form, or note the text of what has ended."""
        if tag == "form":
            self._form = None
        elif tag in {"select", "textarea", "button"} and self._inside:
            name = self._inside.pop()
            if self._form is not None and tag == "textarea":
                self._form.fields[name] = [self._text]
            elif self._form is not None and tag == "button":
                self._form.button = " ".join(self._text.split())
