"""build_sales_report: write a day's sales as CSV and PDF, for people to open."""

from __future__ import annotations

from datetime import date
from typing import Any

from rowcall import Run
from rowcall_example.documents import write_sales_csv, write_sales_pdf
from rowcall_example.job_types import BUILD_SALES_REPORT
from rowcall_example.queries.sales import sales_of_day

FORMATS = {"csv": write_sales_csv, "pdf": write_sales_pdf}


@BUILD_SALES_REPORT.handler
def build_sales_report(run: Run) -> dict[str, Any]:
    """Write both files; the same day gives the same files."""
    day = run.payload["date"]
    with run.step() as connection:
        sales = sales_of_day(connection, date.fromisoformat(day))
    files = {}
    for share, (name, write) in enumerate(FORMATS.items()):
        run.progress(share / len(FORMATS), f"writing {name}")
        path, content = f"sales_report/{day}.{name}", write(sales)

        def keep(_: object, path: str = path, content: bytes = content) -> dict[str, Any]:
            written = run.gateways.files.write(path, content)
            return {
                "reference": written.path,
                "path": written.path,
                "sha256": written.sha256,
                "size_bytes": written.size,
            }

        key = {"type": "sales_report", "date": day, "key": name}
        effect = run.effect("generated_files", key=key, content={"date": day}, perform=keep)
        files[name] = effect.details["path"]
    return files
