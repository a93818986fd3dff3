"""The weekly report as a letter: the figures in the email, charts in its HTML, and a PDF to keep."""

from __future__ import annotations

from rowcall_example.documents import picture, weekly, weekly_pdf
from rowcall_example.documents.letter import Letter, Part
from rowcall_example.documents.rendering import rendered
from rowcall_example.documents.wording import counted, days_text
from rowcall_example.queries import WeeklyFigures

# Emails show the chart wider than it is drawn, so that its labels are as large as the email's small text.
CHART_WIDTH = 392.0


def compose(figures: WeeklyFigures) -> Letter:
    """Return the letter; for a quiet week it has no figures, because negative changes would read like a reproach."""
    days = days_text(figures.first, figures.last)
    charts = [] if figures.week.empty else list(weekly.charts(figures, CHART_WIDTH))
    text, html = rendered(
        "weekly",
        figures=figures,
        days=days,
        summary=weekly.summary(figures),
        counts=list(weekly.counts(figures)),
        amounts=list(weekly.amounts(figures)),
        rows=list(weekly.day_rows(figures)),
        charts=charts,
        content_ids={chart.name: content_id(chart.name) for chart in charts},
    )
    headline = "a quiet week" if figures.week.empty else counted(figures.week.orders, "order")
    return Letter(
        subject=f"Your week {days}: {headline}",
        text=text,
        html=html,
        pictures=tuple(
            Part(f"{chart.name}.png", "image/png", picture.png(chart.drawing), content_id(chart.name))
            for chart in charts
        ),
        attachments=(Part(f"weekly-report-{figures.first}.pdf", "application/pdf", weekly_pdf.compose(figures)),),
    )


def content_id(name: str) -> str:
    """Return the name of a picture in the HTML; the part's Content-ID is this name in angle brackets."""
    return f"{name}@weekly-report"
