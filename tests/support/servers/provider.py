"""A payment provider that behaves like Stripe: it keeps charges and idempotency keys, and fails on request."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from tests.support.servers.web import Reply, Request, WebServer

KEY = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"

# How long the provider remembers an idempotency key.
HORIZON_SECONDS = 24 * 3600.0


@dataclass
class Remembered:
    """The request and the reply of a key."""

    form: dict[str, str]
    reply: Reply
    made_at: float


class Provider(WebServer):
    """`charges` lists the payments that were made, oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.charges: list[dict[str, Any]] = []
        self.keys: dict[str, Remembered] = {}
        self.busy_keys: set[str] = set()
        self.declined_customers: set[str] = set()
        self.surcharge = 0
        self.status = "succeeded"
        self._passed = 0.0
        self._lock = threading.Lock()

    def let_time_pass(self, seconds: float) -> None:
        """Move the provider's clock."""
        self._passed += seconds

    def take(self, request: Request) -> Reply:
        """Charge, or repeat the reply if the key is known."""
        super().take(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        if headers.get("authorization") != f"Bearer {KEY}":
            return _error(401, "invalid_request_error", message="Invalid API Key provided")
        if (request.method, request.path) != ("POST", "/v1/payment_intents"):
            return _error(404, "invalid_request_error", message=f"Unrecognized request URL ({request.path})")
        form = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
        key = headers["idempotency-key"]
        with self._lock:
            now = time.time() + self._passed
            self.keys = {known: kept for known, kept in self.keys.items() if now - kept.made_at < HORIZON_SECONDS}
            if key in self.busy_keys:
                return _error(409, "idempotency_error", message="Another request with this key is in progress")
            if key in self.keys:
                kept = self.keys[key]
                if kept.form != form:
                    return _error(400, "idempotency_error", message="Keys can only be used with the same parameters")
                return kept.reply
            reply = self._charge(form)
            self.keys[key] = Remembered(form, reply, now)
            return reply

    def _charge(self, form: dict[str, str]) -> Reply:
        if form["customer"] in self.declined_customers:
            return _error(
                402, "card_error", code="card_declined", decline_code="insufficient_funds", message="Declined."
            )
        amount = int(form["amount"]) + self.surcharge
        paid = self.status == "succeeded"
        charge = {
            "id": f"pi_{len(self.charges) + 1}",
            "object": "payment_intent",
            "amount": amount,
            "amount_received": amount if paid else 0,
            "currency": form["currency"],
            "customer": form["customer"],
            "description": form["description"],
            "status": self.status,
        }
        if paid:
            self.charges.append(charge)
        return Reply(200, json.dumps(charge).encode(), (("Content-Type", "application/json"),))


def _error(status: int, kind: str, **told: str) -> Reply:
    return Reply(status, json.dumps({"error": {"type": kind, **told}}).encode())
