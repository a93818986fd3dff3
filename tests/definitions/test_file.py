"""Files of definitions: TOML and YAML are equivalent, and errors name the place."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowcall.base.errors import DefinitionFileInvalid, DefinitionInvalid
from rowcall.definitions import checked
from rowcall.definitions.file import FILE_BYTES, IN_TOML, IN_YAML, read_file
from tests.definitions.files import CATALOGUE, TOML, YAML, refusal, written


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


# What cannot be read at all


def test_a_file_that_is_not_there_or_no_file_is_told(folder: Path) -> None:
    assert refusal(folder / "none.toml") == ": cannot be read: No such file or directory"
    assert refusal(folder) == ": cannot be read: Is a directory"
    assert refusal(folder / ("x" * 300)) == ": cannot be read: File name too long"


def test_only_toml_and_yaml_are_read(folder: Path) -> None:
    for name in ("definitions", "a.json", "a.toml.bak"):
        assert refusal(written(folder, name, TOML)) == ": the name must end in .toml, .yaml or .yml"


def test_a_file_must_be_text_of_a_sane_size(folder: Path) -> None:
    for name in ("a.toml", "a.yaml"):
        assert refusal(written(folder, name, b"a: \xff")) == ": is not UTF-8 text: invalid start byte at byte 3"
        assert "is larger than 1048576 bytes" in refusal(written(folder, name, b"#" * (FILE_BYTES + 1)))
        assert len(refusal(written(folder, name, os.urandom(4096)))) < 200


# What is not TOML or YAML: the error names the line, if it is known.


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[definitions\n", ": is not TOML: Expected ']' at the end of a table declaration (at line 1, column 13)"),
        ("[definitions.a]\njob_type = noop\n", ": is not TOML: Invalid value (at line 2, column 12)"),
        ('[definitions.a]\nschedule = "\0"\n', ": is not TOML: Illegal character '\\x00' (at line 2, column 13)"),
        ("[definitions.a]\n[definitions.a]\n", "Cannot declare ('definitions', 'a') twice (at line 2, column 15)"),
        ("[definitions.a]\npriority = 1\npriority = 2\n", "Cannot overwrite a value (at line 3, column 13)"),
        ("[definitions.a]\npayload = { day = 2026-02-30 }\n", "Invalid date or datetime (at line 2, column 19)"),
        (f"a = {'9' * 5000}", ": is not TOML: Exceeds the limit (4300 digits)"),
        (f"a = {'[' * 1000}", ": is not TOML: it nests too deeply"),
    ],
    ids=str,
)
def test_what_is_no_toml_is_told_with_its_line(folder: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(written(folder, "a.toml", text))


STAR_HINT = "a schedule that begins with [*] or @ must be quoted"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("definitions:\n  a:\n    schedule: * * * * *\n", f", line 3: is not YAML: .*; {STAR_HINT}"),
        ("definitions:\n  a:\n    schedule: */5 * * * *\n", f", line 3: is not YAML: .*; {STAR_HINT}"),
        ("definitions:\n  a:\n    schedule: @daily\n", f", line 3: is not YAML: .*; {STAR_HINT}"),
        ("definitions:\n  a: {\n", ", line 3: is not YAML: "),
        ("definitions:\n\ta: 1\n", ", line 2: is not YAML: found character '\\\\t' that cannot start any token$"),
        ("definitions:\n  a: 'x\n", ", line 3: is not YAML: found unexpected end of stream$"),
        ("definitions:\n  a: {}\n  a: {}\n", ", line 3: is not YAML: found duplicate key"),
        ("definitions: {}\n---\ndefinitions: {}\n", ", line 2: is not YAML: but found another document"),
        (
            "definitions:\n  a: !!bool perhaps\n",
            ", line 2: is not YAML: tags \\(!\\) are not supported: write the value",
        ),
        ("definitions:\n  a: !!python/object:os.system {}\n", ", line 2: is not YAML: tags"),
        ("definitions:\n  a: !!int ''\n", ", line 2: is not YAML: tags"),
        ("definitions:\n  a:\n    payload: {day: 2026-02-30}\n", ": is not YAML: day is out of range for month"),
        ("definitions:\n  a: \0\n", ": is not YAML: .*special characters are not allowed"),
        (f"a: {'9' * 5000}", ": is not YAML: Exceeds the limit"),
        ("[" * 500, ": is not YAML: it nests too deeply"),
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
        assert ", line 1: is not YAML: anchors (&) and aliases (*) are not supported" in refusal(
            written(folder, "a.yaml", text)
        )


# Any content is either read or refused with a sentence.

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
    # No file can contain half of a surrogate pair.
    file.write_bytes(text.encode(errors="replace"))
    with contextlib.suppress(DefinitionFileInvalid, DefinitionInvalid):
        for definition, content in read_file(file).items():
            checked(definition, content, CATALOGUE)
