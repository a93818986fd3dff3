"""Files of definitions: TOML and YAML say the same, and what cannot be read is told with its place."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection
from rowcall.base.errors import DefinitionFileInvalid, DefinitionInvalid
from rowcall.definitions import apply_file, checked, list_definitions
from rowcall.definitions.file import FILE_BYTES, IN_TOML, IN_YAML, read_file
from rowcall.job_types import load_catalogue

CATALOGUE = load_catalogue("rowcall_example")

TOML = """
[definitions.nightly]
job_type = "cleanup_nightly"
schedule = "*/5 3 * * *"
time_zone = "Europe/Berlin"
payload = { day = "{date-1}" }
max_lateness = "6h"
priority = -1

[definitions."by.hand"]
job_type = "noop"
payload = { on = true, at = "12:30", half = 0.5, list = [1, { deep = "x" }] }
jitter = 90
"""

YAML = """
# The same.
definitions:
  nightly:
    job_type: cleanup_nightly
    schedule: "*/5 3 * * *"
    time_zone: Europe/Berlin
    payload: {day: "{date-1}"}
    max_lateness: 6h
    priority: -1
  by.hand:
    job_type: noop
    payload:
      on: true
      at: 12:30
      half: 0.5
      list:
        - 1
        - deep: x
    jitter: 90
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where this test's files are."""
    return tmp_path


def written(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def refusal(file: Path) -> str:
    """What is said of a file that cannot be read, behind its name."""
    with pytest.raises(DefinitionFileInvalid) as refused:
        read_file(file)
    sentence = str(refused.value)
    assert sentence.startswith(str(file))
    return sentence.removeprefix(str(file))


def test_toml_and_yaml_say_the_same(folder: Path) -> None:
    held = read_file(written(folder, "a.toml", TOML))
    for name in ("a.yaml", "a.yml", "A.YAML"):
        assert read_file(written(folder, name, YAML)) == held
    assert list(held) == ["nightly", "by.hand"]
    assert held["by.hand"]["payload"] == {"on": True, "at": "12:30", "half": 0.5, "list": [1, {"deep": "x"}]}
    assert all(checked(name, content, CATALOGUE) for name, content in held.items())


def test_the_examples_that_a_refusal_shows_are_good_ones(folder: Path) -> None:
    in_toml, in_yaml = written(folder, "a.toml", IN_TOML), written(folder, "a.yaml", IN_YAML)
    assert read_file(in_toml) == read_file(in_yaml)
    assert checked("nightly", read_file(in_toml)["nightly"], CATALOGUE)


def test_an_editors_mark_of_the_encoding_is_no_text(folder: Path) -> None:
    for name, text in (("a.toml", TOML), ("a.yaml", YAML)):
        assert len(read_file(written(folder, name, b"\xef\xbb\xbf" + text.encode()))) == 2


def test_no_definitions_can_be_said_in_so_many_words(folder: Path) -> None:
    assert read_file(written(folder, "a.toml", "[definitions]")) == {}
    assert read_file(written(folder, "a.yaml", "definitions: {}")) == {}


# What cannot be read at all.


def test_a_file_that_is_not_there_or_no_file_is_told(folder: Path) -> None:
    assert refusal(folder / "none.toml") == ": cannot be read: No such file or directory"
    assert refusal(folder) == ": cannot be read: Is a directory"
    assert refusal(folder / ("x" * 300)) == ": cannot be read: File name too long"


def test_only_toml_and_yaml_are_read(folder: Path) -> None:
    for name in ("definitions", "a.json", "a.toml.bak"):
        assert refusal(written(folder, name, TOML)) == ": the name must end in .toml, .yaml or .yml"


def test_a_file_must_be_text_of_a_sane_size(folder: Path) -> None:
    for name in ("a.toml", "a.yaml"):
        assert refusal(written(folder, name, b"a: \xff")) == ": is no UTF-8 text: invalid start byte at byte 3"
        assert "is larger than 1048576 bytes" in refusal(written(folder, name, b"#" * (FILE_BYTES + 1)))
        assert len(refusal(written(folder, name, os.urandom(4096)))) < 200


# What is no TOML, or no YAML: with the line, where it is known.


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[definitions\n", ": is no TOML: Expected ']' at the end of a table declaration (at line 1, column 13)"),
        ("[definitions.a]\njob_type = noop\n", ": is no TOML: Invalid value (at line 2, column 12)"),
        ('[definitions.a]\nschedule = "\0"\n', ": is no TOML: Illegal character '\\x00' (at line 2, column 13)"),
        ("[definitions.a]\n[definitions.a]\n", "Cannot declare ('definitions', 'a') twice (at line 2, column 15)"),
        ("[definitions.a]\npriority = 1\npriority = 2\n", "Cannot overwrite a value (at line 3, column 13)"),
        ("[definitions.a]\npayload = { day = 2026-02-30 }\n", "Invalid date or datetime (at line 2, column 19)"),
        (f"a = {'9' * 5000}", ": is no TOML: Exceeds the limit (4300 digits)"),
        (f"a = {'[' * 1000}", ": is no TOML: it nests too deep"),
    ],
    ids=str,
)
def test_what_is_no_toml_is_told_with_its_line(folder: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(written(folder, "a.toml", text))


STAR_HINT = "a schedule that begins with [*] or @ must stand in quotes"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("definitions:\n  a:\n    schedule: * * * * *\n", f", line 3: is no YAML: .*; {STAR_HINT}"),
        ("definitions:\n  a:\n    schedule: */5 * * * *\n", f", line 3: is no YAML: .*; {STAR_HINT}"),
        ("definitions:\n  a:\n    schedule: @daily\n", f", line 3: is no YAML: .*; {STAR_HINT}"),
        ("definitions:\n  a: {\n", ", line 3: is no YAML: "),
        ("definitions:\n\ta: 1\n", ", line 2: is no YAML: found character '\\\\t' that cannot start any token$"),
        ("definitions:\n  a: 'x\n", ", line 3: is no YAML: found unexpected end of stream$"),
        ("definitions:\n  a: {}\n  a: {}\n", ", line 3: is no YAML: found duplicate key"),
        ("definitions: {}\n---\ndefinitions: {}\n", ", line 2: is no YAML: but found another document"),
        ("definitions:\n  a: !!bool perhaps\n", ", line 2: is no YAML: tags \\(!\\) are not read: write the value"),
        ("definitions:\n  a: !!python/object:os.system {}\n", ", line 2: is no YAML: tags"),
        ("definitions:\n  a: !!int ''\n", ", line 2: is no YAML: tags"),
        ("definitions:\n  a:\n    payload: {day: 2026-02-30}\n", ": is no YAML: day is out of range for month"),
        ("definitions:\n  a: \0\n", ": is no YAML: .*special characters are not allowed"),
        (f"a: {'9' * 5000}", ": is no YAML: Exceeds the limit"),
        ("[" * 500, ": is no YAML: it nests too deep"),
    ],
    ids=str,
)
def test_what_is_no_yaml_is_told_with_its_line(folder: Path, text: str, sentence: str) -> None:
    with pytest.raises(DefinitionFileInvalid, match=sentence):
        read_file(written(folder, "a.yaml", text))


def test_a_few_lines_cannot_become_gigabytes(folder: Path) -> None:
    levels = (f"{one}: &{one} [{', '.join([f'*{before}'] * 9)}]\n" for before, one in itertools.pairwise("abcdefghi"))
    bomb = "a: &a [x, x]\n" + "".join(levels)
    for text in (bomb, "a: &a [*a]\n", "a: &a {b: 1}\nc: {<<: *a}\n"):
        assert ", line 1: is no YAML: anchors (&) and aliases (*) are not read" in refusal(
            written(folder, "a.yaml", text)
        )


# What can be read, and is not a table of definitions.


@pytest.mark.parametrize(
    ("name", "text", "beside"),
    [
        ("a.toml", "", ""),
        ("a.toml", "# nothing\n", ""),
        ("a.toml", '[nightly]\njob_type = "noop"\n', "; it holds nightly"),
        ("a.toml", "[definition.nightly]\n", "; it holds definition"),
        ("a.toml", "definitions = []\n", ""),
        ("a.toml", "version = 1\n[definitions]\n", "; it holds version"),
        ("a.toml", "[[definitions]]\n", ""),
        ("a.yaml", "", ""),
        ("a.yaml", "---\n", ""),
        ("a.yaml", "- definitions\n", ""),
        ("a.yaml", "nightly\n", ""),
        ("a.yaml", "definitions:\n", ""),
        ("a.yaml", "definitions:\n- nightly\n", ""),
        ("a.yaml", "1: {}\ndefinitions: {}\n", "; it holds 1"),
        ("a.yaml", "? [a]\n: b\n", "; it holds ('a',)"),
    ],
)
def test_a_file_holds_one_table_of_definitions(folder: Path, name: str, text: str, beside: str) -> None:
    example = IN_TOML if name == "a.toml" else IN_YAML
    assert refusal(written(folder, name, text)) == (
        f": must hold one table `definitions` and nothing beside it{beside}. For example:\n{example}"
    )


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.toml", "[definitions]\nnightly = 1\n", "nightly"),
        ("a.toml", "[[definitions.nightly]]\n", "nightly"),
        ("a.yaml", "definitions:\n  nightly:\n", "nightly"),
        ("a.yaml", "definitions:\n  2026-01-01: {job_type: noop}\n", "2026-01-01"),
        ("a.yaml", "definitions:\n  7: {job_type: noop}\n", "7"),
        ("a.yaml", "definitions:\n  ~: {job_type: noop}\n", "None"),
    ],
)
def test_each_definition_is_a_name_with_a_table(folder: Path, name: str, text: str, place: str) -> None:
    assert refusal(written(folder, name, text)).startswith(f": definitions.{place} must be a name with a table")


# What TOML and YAML hold beside JSON.


def payload_of(file: Path) -> Any:
    return checked("a", read_file(file)["a"], CATALOGUE).payload


def test_dates_and_times_in_a_payload_become_iso_8601(folder: Path) -> None:
    in_toml = "day = 2026-03-29, at = 2026-03-29T02:30:00+01:00, wall = 2026-03-29 02:30:00"
    in_yaml = "{day: 2026-03-29, at: 2026-03-29T02:30:00+01:00, wall: 2026-03-29 02:30:00}"
    kept = {"day": "2026-03-29", "at": "2026-03-29T02:30:00+01:00", "wall": "2026-03-29T02:30:00"}
    toml = written(folder, "a.toml", f'[definitions.a]\njob_type = "noop"\npayload = {{ {in_toml}, t = 02:30:00 }}')
    assert payload_of(toml) == {**kept, "t": "02:30:00"}
    yaml = written(folder, "a.yaml", f"definitions:\n  a:\n    job_type: noop\n    payload: {in_yaml}\n")
    assert payload_of(yaml) == kept


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        ("a.toml", "payload = { a = nan }", "definition 'a', payload: payload.a is nan, which JSON cannot hold"),
        ("a.toml", "payload = { a = [-inf] }", "definition 'a', payload: payload.a[0] is -inf"),
        ("a.toml", "schedule = 2026-01-01", "schedule: is datetime.date(2026, 1, 1) and must be text"),
        ("a.toml", "priority = inf", "priority: is inf and must be a whole number"),
        ("a.toml", f"payload = {{ a = {'[' * 50}{']' * 50} }}", "payload: nests deeper than 32 levels"),
        ("a.toml", 'payload = { a = "\\u0000" }', "payload: it holds a null character"),
        ("a.yaml", "payload: {a: .nan}", "payload: payload.a is nan"),
        ("a.yaml", "payload: {a: {1: b}}", "payload: payload.a has the name 1, which is not text"),
        ("a.yaml", "payload: {yes: 1, true: 2}", "payload: payload has the name True, which is not text"),
        ("a.yaml", "payload: ~", "payload: is null and must be left out or hold a value"),
        ("a.yaml", "max_lateness: [6, h]", "max_lateness: \"[6, 'h']\" is no duration"),
        ("a.yaml", "1: 2", "definition 'a', 1: is not a field of a definition"),
    ],
    ids=str,
)
def test_what_a_definition_cannot_hold_is_refused_like_any_other_wrong_field(
    folder: Path, name: str, fields: str, sentence: str
) -> None:
    in_toml, in_yaml = (
        f'[definitions.a]\njob_type = "noop"\n{fields}',
        f"definitions:\n  a: {{job_type: noop, {fields}}}",
    )
    file = written(folder, name, in_toml if name == "a.toml" else in_yaml)
    with pytest.raises(DefinitionInvalid) as refused:
        checked("a", read_file(file)["a"], CATALOGUE)
    assert sentence in str(refused.value)


def test_of_a_file_that_is_wrong_somewhere_nothing_is_applied_and_everything_told(
    connection: PgConnection, folder: Path
) -> None:
    wrong = f'{TOML}\n[definitions.Third]\njob_type = "nop"\n[definitions.fourth]\njob_type = "noop"\nqueue = 1\n'
    file = written(folder, "a.toml", wrong)
    with pytest.raises(DefinitionFileInvalid) as refused:
        apply_file(connection, file, CATALOGUE, Operator("test"))
    first, *sentences = str(refused.value).splitlines()
    assert first == f"{file}: nothing was applied:"
    assert [sentence.partition(": ")[0] for sentence in sentences] == [
        "definition 'Third', job_type",
        "definition 'Third', name",
        "definition 'fourth', queue",
    ]
    assert list_definitions(connection) == []


# Whatever stands in a file, it is read, or refused in a sentence.

PIECES = (
    *("definitions", "job_type", "payload", "schedule", "noop", "\n", "\n  ", "    ", ": ", "- ", "[", "]", "{", "}"),
    *('"', "'", "=", "*", "&a", "*a", "!", "!!int ", "!!set ", "? ", "|", ">", "%YAML 1.1\n", "---", "...", "#", "@"),
    *("2026-02-30", "1e999", ".nan", "nan", "0x", "12:30", "<<: ", "~", "\t", "\0", "\x85", "\u2028", "\ufeff", "é"),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=25).map("".join)


@settings(max_examples=150)
@given(text=TEXTS)
@example(text="definitions: {a: {job_type: noop, 0: 1}}")
@example(text="!!timestamp x")
@example(text="a: !!int ''")
@example(text="? {a: b}\n: c")
@example(text="\r")
@pytest.mark.parametrize("name", ["a.toml", "a.yaml"])
def test_no_text_is_answered_with_anything_but_its_content_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / name
    # Half a surrogate pair is in no file.
    file.write_bytes(text.encode(errors="replace"))
    with contextlib.suppress(DefinitionFileInvalid, DefinitionInvalid):
        for definition, content in read_file(file).items():
            checked(definition, content, CATALOGUE)
