"""Stand-ins for a payment provider and a webhook receiver, on loopback; only for the demo.

`rowcall up` starts them if it seeds the demo.  No money moves: a charge is a line in `charges.jsonl`, a webhook a file
in `webhooks/`.  They fail twice on purpose: one invoice's first charge is declined, and a flaky event's first delivery
is refused.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

HOST = "127.0.0.1"

# The invoice whose first charge is declined; the ledger sends the next charge under another key.
DECLINED_INVOICE = "DEMO-003-3"

# An event whose id ends like this is refused once, with a request to retry soon.
FLAKY = "-flaky"
AGAIN_SECONDS = 2

BODY_BYTES = 1 << 20

# The id becomes a file name.
EVENT_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")

# How far a signature's time may be off, as Standard Webhooks recommends.
TOLERANCE_SECONDS = 300

SIGNED = ("id", "timestamp", "signature")

Answer = tuple[int, dict[str, Any]]


class Provider:
    """Charges once per key; its answers are in a file, and remain valid after a restart."""

    def __init__(self, file: Path, key: str) -> None:
        self._file = file
        self._key = key
        self._lock = threading.Lock()
        lines = file.read_text().splitlines() if file.exists() else []
        self._answered = {charge["idempotency_key"]: charge for charge in map(json.loads, lines)}

    def charge(self, authorization: str, key: str, form: dict[str, str]) -> Answer:
        """Charge, or repeat the answer if the key is known."""
        if not hmac.compare_digest(authorization.encode(), f"Bearer {self._key}".encode()):
            return 401, _error("invalid_request_error", message="this is not the key that `rowcall up` created")
        if not key or not {"amount", "currency", "customer", "description"} <= set(form):
            return 400, _error("invalid_request_error", message="an Idempotency-Key or a field is missing")
        with self._lock:
            charge = self._answered.get(key)
            if charge is None:
                status, answer = self._decide(form)
                charge = {"idempotency_key": key, "status": status, "form": form, "answer": answer}
                with self._file.open("a") as file:
                    file.write(json.dumps(charge) + "\n")
                self._answered[key] = charge
        if charge["form"] != form:
            return 400, _error("idempotency_error", message="this key was used for another charge")
        return charge["status"], charge["answer"]

    def _decide(self, form: dict[str, str]) -> Answer:
        invoices = {charge["form"]["description"] for charge in self._answered.values()}
        if form["description"] == DECLINED_INVOICE not in invoices:
            message = "the demo declines this invoice's first charge; retry the run"
            return 402, _error("card_error", code="card_declined", decline_code="insufficient_funds", message=message)
        copied = {name: form[name] for name in ("currency", "customer", "description")}
        number = len(self._answered) + 1
        return 200, {"id": f"pi_demo_{number}", "status": "succeeded", "amount": int(form["amount"]), **copied}


class Receiver:
    """Accepts signed events, and writes each to a file named after its id."""

    def __init__(self, folder: Path, secrets: Sequence[bytes]) -> None:
        self._folder = folder
        self._secrets = secrets
        self._refused: set[str] = set()
        folder.mkdir(exist_ok=True)

    def take(self, event_id: str, sent_at: str, signatures: str, body: bytes) -> Answer:
        """Check the signature, and store the event; accept a flaky one only on its second delivery."""
        if not EVENT_ID.fullmatch(event_id) or not self._signed(f"{event_id}.{sent_at}.".encode() + body, signatures):
            return 401, _error("signature", message="the signature does not match, or the id is not a file name")
        if not sent_at.isdecimal() or abs(time.time() - int(sent_at)) > TOLERANCE_SECONDS:
            return 401, _error("signature", message="the signature's time is too far off")
        if event_id.endswith(FLAKY) and event_id not in self._refused:
            self._refused.add(event_id)
            return 503, _error("demo", message="the demo's receiver refuses this event's first delivery")
        part = self._folder / f".{event_id}.part"
        part.write_text(json.dumps(json.loads(body), indent=2, ensure_ascii=False) + "\n")
        part.replace(self._folder / f"{event_id}.json")
        return 200, {"received": event_id}

    def _signed(self, content: bytes, signatures: str) -> bool:
        expected = [base64.b64encode(hmac.digest(secret, content, "sha256")).decode() for secret in self._secrets]
        given = signatures.split()
        return any(hmac.compare_digest(f"v1,{word}".encode(), one.encode()) for word in expected for one in given)


def hooks_url(port: int) -> str:
    """Return the URL at which the receiver accepts events."""
    return f"http://{HOST}:{port}/hooks"


def serve(folder: Path, payment_key: str, webhook_secrets: Sequence[bytes], port: int) -> None:
    """Serve until the process ends."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    provider = Provider(folder / "charges.jsonl", payment_key)
    receiver = Receiver(folder / "webhooks", webhook_secrets)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            body = self.rfile.read(min(int(length), BODY_BYTES)) if length.isdecimal() else b""
            head = {name.lower(): value for name, value in self.headers.items()}
            if self.path == "/v1/payment_intents":
                form = dict(parse_qsl(body.decode(), keep_blank_values=True))
                answer = provider.charge(head.get("authorization", ""), head.get("idempotency-key", ""), form)
            elif self.path == "/hooks":
                event_id, sent_at, signatures = (head.get(f"webhook-{name}", "") for name in SIGNED)
                answer = receiver.take(event_id, sent_at, signatures, body)
            else:
                answer = 404, _error("demo", message="only /v1/payment_intents and /hooks exist here")
            self._say(*answer)

        def _say(self, status: int, answer: dict[str, Any]) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status == 503:
                self.send_header("Retry-After", str(AGAIN_SECONDS))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Log nothing: the files contain what was received."""

    ThreadingHTTPServer((HOST, port), Handler).serve_forever()


def _error(error_type: str, **details: str) -> dict[str, Any]:
    return {"error": {"type": error_type, **details}}
