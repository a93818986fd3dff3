"""send_weekly_report: email a user's week with figures, charts and a PDF, once a week."""

from __future__ import annotations

from datetime import date

from rowcall import Run
from rowcall_example.documents import write_weekly_letter
from rowcall_example.job_types import SEND_WEEKLY_REPORT
from rowcall_example.mailing import mail_letter
from rowcall_example.queries.weekly import weekly_figures


@SEND_WEEKLY_REPORT.handler
def send_weekly_report(run: Run) -> None:
    """Send the email, then record this user's report of the week, together with the run's success."""
    user_id, week = run.payload["user_id"], run.payload["date_range"]
    with run.step() as connection:
        figures = weekly_figures(connection, user_id, date.fromisoformat(week["from"]), date.fromisoformat(week["to"]))
    run.progress(0.3, "writing")
    letter = write_weekly_letter(figures)
    run.progress(0.6, "sending")
    about = {"template": "weekly_report", "user_id": user_id, "week": week["from"]}
    effect = mail_letter(run, letter, figures.user, key=f"weekly_report:{user_id}:{week['from']}", content=about)
    result = {"sent": effect.reference, "recipient": figures.user.email}
    with run.transaction(result) as connection:
        key = {"user_id": user_id, "week_start_date": week["from"]}
        run.record(connection, "sent_reports", key=key, content=about, reference=f"sent_emails {effect.id}")
