"""The same figures give the same bytes, in any thread and process; and libraries are loaded only when needed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from rowcall_example.documents import (
    Letter,
    write_invoice_letter,
    write_sales_csv,
    write_sales_pdf,
    write_weekly_letter,
)
from rowcall_example.queries import ReminderKind
from tests.example.documents.figures import customer, day_sales, invoice, weekly
from tests.support.processes import LIMIT_SECONDS, ROOT

HEAVY = ("fontTools", "fpdf", "jinja2", "PIL")


def digest() -> str:
    """Return a digest of one document of every kind."""
    found = hashlib.sha256()
    sales = day_sales(*(customer(number) for number in range(1, 40)))
    letters: list[Letter] = [write_weekly_letter(weekly()), write_invoice_letter(invoice(), ReminderKind.DUE)]
    for letter in letters:
        found.update(f"{letter.subject}{letter.text}{letter.html}".encode())
        for part in (*letter.pictures, *letter.attachments):
            found.update(part.content)
    found.update(write_sales_pdf(sales) + write_sales_csv(sales))
    return found.hexdigest()


def python(source: str, **environment: str) -> str:
    """Return what another Python process prints."""
    told = subprocess.run(
        [sys.executable, "-c", source], env={**os.environ, **environment}, cwd=ROOT, check=True,
        capture_output=True, text=True, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    return told.stdout.strip()


def test_many_threads_at_once_make_the_same_documents() -> None:
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: digest(), range(4))) == {digest()}


def test_another_process_in_another_place_and_time_zone_makes_the_same_documents() -> None:
    source = "from tests.example.documents.test_sameness import digest; print(digest())"
    assert python(source, PYTHONHASHSEED="7", TZ="Asia/Tokyo", SOURCE_DATE_EPOCH="1", LC_ALL="C") == digest()


def test_a_worker_starts_without_what_draws_and_sets_type() -> None:
    names = "*sorted({name.split('.')[0] for name in sys.modules})"
    source = f"import sys, rowcall_worker.cli, rowcall_example.documents; print({names})"
    loaded = python(source).split()
    assert "rowcall_worker" in loaded
    assert not set(HEAVY) & set(loaded)
