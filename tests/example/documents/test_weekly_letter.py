"""The weekly report: a letter with charts and a PDF, with the same figures in all three forms."""

from __future__ import annotations

import io

import pypdfium2
import pytest
from PIL import Image

from rowcall_example.documents import write_weekly_letter
from rowcall_example.documents.colours import ACCENT, EARLIER
from rowcall_example.queries import DayFigures, Sales, WeeklyFigures
from tests.example.documents.figures import MONDAY, OFFICE, Page, named, pages, week, weekly

QUIET = week()


def every_form(figures: WeeklyFigures) -> list[str]:
    """Return the letter's text, the text of its HTML, and that of its PDF."""
    letter = write_weekly_letter(figures)
    return [letter.text, Page(letter.html).text, "\n".join(pages(letter.attachments[0].content))]


def test_text_html_and_pdf_tell_the_same_figures() -> None:
    for told in every_form(weekly()):
        for fact in (
            "9–15 November 2026",
            "Northwind Office 3",
            "5 orders and 2 sessions: 1 order more than the week before",
            "+1 (+25%)",
            "−30 (−25%)",
            "1,300.00 EUR",
            "1,000.00 EUR",
            "+30%",
            "Mon 9 Nov",
            "1,234.50 EUR",
            "65.50 EUR",
            "Sun 15 Nov",
            "Europe/Berlin",
        ):
            assert fact in " ".join(told.split()), f"{fact} in {told}"


def test_the_subject_names_the_week_and_how_it_went() -> None:
    assert write_weekly_letter(weekly()).subject == "Your week 9–15 November 2026: 5 orders"
    assert write_weekly_letter(weekly(QUIET)).subject == "Your week 9–15 November 2026: a quiet week"


def test_each_currency_has_its_own_sum_and_its_own_decimal_places() -> None:
    several = week([Sales("EUR", 1, 100), Sales("JPY", 1, 5000), Sales("KWD", 1, 1234)])
    for told in every_form(weekly(several, week([Sales("GBP", 1, 900)]))):
        for amount in ("1.00 EUR", "5,000 JPY", "1.234 KWD", "0.00 GBP", "9.00 GBP", "−100%", "new"):
            assert amount in told


def test_a_quiet_week_is_told_kindly_and_without_figures_below_zero() -> None:
    for before, words in (
        (None, "The week before had 4 orders and 1 session."),
        (QUIET, "That is fine: everything is as you left it, and ready when you are."),
    ):
        figures = weekly(QUIET, before)
        for told in every_form(figures):
            assert f"9–15 November 2026 was quiet: no orders and no sessions. {words}" in " ".join(told.split())
            assert "−" not in told
            assert "Mon 9 Nov" not in told
        assert write_weekly_letter(figures).pictures == ()


def test_a_chart_is_left_out_where_both_weeks_have_nothing_to_show() -> None:
    assert [part.name for part in write_weekly_letter(weekly()).pictures] == ["orders.png", "minutes.png"]
    sales_only = weekly(week([Sales("EUR", 1, 100)]), QUIET)
    assert [part.name for part in write_weekly_letter(sales_only).pictures] == ["orders.png"]


def test_the_html_shows_every_picture_it_carries_and_fetches_nothing() -> None:
    letter = write_weekly_letter(weekly())
    page = Page(letter.html)
    assert [image["src"] for image in page.all("img")] == [f"cid:{part.content_id}" for part in letter.pictures]
    assert page.all("img")[0]["alt"] == (
        "Orders per day: Mon 9 3, Tue 10 0, Wed 11 2, Thu 12 0, Fri 13 0, Sat 14 0, Sun 15 0."
        " The week before: 4, 0, 0, 0, 0, 0, 0."
    )
    assert not page.all("script") + page.all("link")
    assert "http" not in letter.html


def test_the_html_is_600_pixels_wide_at_most_and_ready_for_the_dark() -> None:
    html = write_weekly_letter(weekly()).html
    assert "max-width: 600px" in html
    assert "prefers-color-scheme: dark" in html
    assert 'name="color-scheme" content="light dark"' in html


def test_a_picture_is_sharp_and_has_bars_of_both_weeks_on_white() -> None:
    for part in write_weekly_letter(weekly()).pictures:
        picture = Image.open(io.BytesIO(part.content)).convert("RGB")
        assert (part.media_type, picture.format_description) == ("image/png", None)
        assert picture.width >= 2 * 528
        colours = {colour for count, colour in picture.getcolors(10_000) or () if count > 500}
        assert colours >= {(255, 255, 255), _rgb(ACCENT), _rgb(EARLIER)}


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))


def test_the_pdf_is_one_page_that_says_what_it_is() -> None:
    [part] = write_weekly_letter(weekly()).attachments
    assert (part.name, part.media_type) == ("weekly-report-2026-11-09.pdf", "application/pdf")
    with pypdfium2.PdfDocument(part.content) as document:
        told = document.get_metadata_dict()
        assert (told["Title"], told["CreationDate"]) == ("Weekly report: 9–15 November 2026", "D:20261115000000Z")
        assert [round(side) for side in document[0].get_size()] == [595, 842]
        assert len(document) == 1
    assert "Page 1 of 1" in pages(part.content)[0]


@pytest.mark.parametrize("name", ["Łukasz Żółć", "Ünal İşğ", "Жанна Δέλτα", "Zoe\u0301 Nguyễn"])
def test_a_name_that_the_font_can_set_stands_in_the_pdf(name: str) -> None:
    [part] = write_weekly_letter(weekly(user=named(name))).attachments
    assert name.replace("e\u0301", "é") in pages(part.content)[0]


@pytest.mark.parametrize("name", ["山田商店", "שלום", "سلام", "Blumen 🌷", "हिन्दी", "\ufffe\U000e0041"])
def test_a_name_that_it_cannot_set_gives_way_to_the_address_there_and_stands_in_the_letter(name: str) -> None:
    letter = write_weekly_letter(weekly(user=named(name)))
    assert "For seven@example.com" in pages(letter.attachments[0].content)[0]
    assert f"Hello {name}," in letter.text
    assert name in letter.html


def test_a_name_is_text_and_never_markup() -> None:
    letter = write_weekly_letter(weekly(user=named("<script>alert(1)</script> & \"Sons\" 'n' <b>")))
    assert not Page(letter.html).all("script") + Page(letter.html).all("b")
    assert "Hello <script>alert(1)</script> & \"Sons\" 'n' <b>," in Page(letter.html).text.replace(" ,", ",")
    assert 'Hello <script>alert(1)</script> & "Sons"' in letter.text


def test_a_name_cannot_break_out_of_its_line_nor_turn_the_text_around() -> None:
    letter = write_weekly_letter(weekly(user=named("A\r\n\r\nBcc: you\u202e\u2028\x00\x1b[31m")))
    assert "Hello A Bcc: you [31m," in letter.text


def test_an_endless_name_is_cut() -> None:
    letter = write_weekly_letter(weekly(user=named("long" * 1000)))
    assert max(map(len, letter.text.splitlines())) < 100
    assert len(pages(letter.attachments[0].content)) == 1


def test_figures_of_any_size_are_told_in_full() -> None:
    huge = DayFigures(MONDAY, (Sales("EUR", 12_345_678, 2**63 - 1),), 98_765, 1_234_567)
    for told in every_form(weekly(week(*[huge] * 7))):
        for fact in ("86,419,746", "645,636,042,579,834,306.49 EUR", "92,233,720,368,547,758.07 EUR", "over 999%"):
            assert fact in told


def test_many_currencies_go_on_over_several_pages() -> None:
    codes = [f"X{first}{second}" for first in "ABCDE" for second in "ABCDE"]
    many = week(*[[Sales(code, 1, 100) for code in codes]] * 7)
    [part] = write_weekly_letter(weekly(many)).attachments
    first, *_, last = told = pages(part.content)
    assert len(told) > 3
    assert f"Page {len(told)} of {len(told)}" in last
    assert all("Weekly report: 9–15 November 2026" in page for page in told[1:])
    assert "\n".join(told).count("1.00 XEE") == 7
    assert OFFICE.name in first


def test_a_day_that_goes_on_over_a_page_is_named_there_again() -> None:
    many = week([Sales(f"X{letter}X", 1, 100) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"])
    [part] = write_weekly_letter(weekly(many)).attachments
    _, *later = pages(part.content)
    assert any("Day Orders Sessions Minutes Amount\nMon 9 Nov" in page for page in later)
    assert "".join(later).count("26 – – 1.00 XAX") == 1
