"""Files are complete or absent, and inside their root, whatever process is killed and whatever a path contains."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowcall.base.errors import Unavailable, Unusable
from rowcall.base.files import Files, Written
from tests.support.processes import ROOT, wait_until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the root folder, which does not exist yet."""
    return tmp_path / "deep" / "files"


@pytest.fixture
def files(root: Path) -> Files:
    """The gateway."""
    return Files(root)


def everything_below(folder: Path) -> set[str]:
    """Return all files and folders, including hidden ones."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def content_of(files: Files, path: str) -> bytes:
    """Return the content that the gateway reads."""
    with files.open(path) as file:
        return file.read()


def test_a_file_is_written_whole_and_described(files: Files, root: Path) -> None:
    content = b"amount;currency\r\n1999;eur\r\n"
    written = files.write("exports/2026-10-01/orders.csv", content)
    assert written == Written("exports/2026-10-01/orders.csv", hashlib.sha256(content).hexdigest(), len(content))
    assert content_of(files, written.path) == content
    assert everything_below(root) == {"exports", "exports/2026-10-01", "exports/2026-10-01/orders.csv"}


def test_pieces_are_one_file(files: Files) -> None:
    assert files.write("a.csv", (f"{number}\n".encode() for number in range(1000))).size == 3890
    assert content_of(files, "a.csv").count(b"\n") == 1000
    assert files.write("empty.csv", b"").size == 0


def test_only_the_owner_may_read_and_enter(files: Files, root: Path) -> None:
    before = os.umask(0)
    try:
        files.write("a/b.pdf", b"secret")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in ("", "a", "a/b.pdf")] == [0o700, 0o700, 0o600]


def test_the_same_content_again_is_harmless_and_other_content_takes_its_place_at_once(files: Files) -> None:
    assert files.write("a.csv", b"one") == files.write("a.csv", b"one")
    with files.open("a.csv") as old:
        files.write("a.csv", b"another")
        assert old.read() == b"one"
    assert content_of(files, "a.csv") == b"another"


def test_a_failure_half_way_leaves_what_was_there(files: Files, root: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError

    files.write("a.csv", b"whole")
    with pytest.raises(ZeroDivisionError):
        files.write("a.csv", pieces())
    assert content_of(files, "a.csv") == b"whole"
    assert everything_below(root) == {"a.csv"}


def test_a_deleted_file_is_gone_and_deleting_it_again_is_harmless(files: Files) -> None:
    files.write("a/b.csv", b"x")
    assert files.delete("a/b.csv") is True
    assert files.delete("a/b.csv") is False
    assert files.delete("nowhere/b.csv") is False
    with pytest.raises(Unusable, match="there is no file 'a/b.csv'"):
        files.open("a/b.csv")


BAD_PATHS = [
    "",
    "/",
    "/etc/passwd",
    "..",
    "../a",
    "a/../../b",
    "a/..",
    "./a",
    "a/./b",
    "a//b",
    "a/",
    ".hidden",
    "a/.b.csv.part",
    "a\0b",
    "a\nb",
    "a b",
    "a\\b",
    "C:\\a",
    "~/a",
    "ä",
    "-rf",
    "x" * 101,
    "/".join(["abcdefghi"] * 41),
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_is_not_plainly_below_the_root_is_refused(files: Files, root: Path, path: str) -> None:
    for attempt in (lambda: files.write(path, b"x"), lambda: files.open(path), lambda: files.delete(path)):
        with pytest.raises(Unusable, match="the path .* must be names separated by /"):
            attempt()
    assert not root.exists()


@given(
    st.lists(st.sampled_from(["..", ".", "/", "a", "b.csv", "\0", "~", "-", "é", "\\", "link", ".part"]), max_size=9)
)
@example(["link", "/", "a"])
@example(["a", "/", "link", "/", "a"])
def test_no_path_at_all_leads_out(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    base = tmp_path_factory.mktemp("escape")
    root, outside = base / "root", base / "outside"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "a").write_bytes(b"theirs")
    (root / "link").symlink_to(outside)
    (root / "a" / "link").symlink_to(outside)
    files, path = Files(root), "".join(names)
    try:
        files.write(path, b"x")
    except Unusable:
        pass
    else:
        assert content_of(files, path) == b"x"
        assert (root / path).resolve().is_relative_to(root)
    assert everything_below(outside) == {"a"}
    assert (outside / "a").read_bytes() == b"theirs"


def test_a_link_inside_of_the_root_is_neither_followed_nor_read(files: Files, root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_bytes(b"hush")
    files.write("a/b.csv", b"x")
    (root / "a" / "folder").symlink_to(secret)
    (root / "a" / "file").symlink_to(secret / "key")
    (root / "up").symlink_to("..")
    for path in ("a/folder/key", "a/file", "up/secret/key"):
        with pytest.raises(Unusable, match="contains a link, a file where a folder should be"):
            files.open(path)
    for path in ("a/folder/new", "up/new", "a/b.csv/new"):
        with pytest.raises(Unusable, match="contains a link"):
            files.write(path, b"x")
    # The link itself may be replaced and deleted; its target stays.
    files.write("a/file", b"mine")
    files.delete("a/file")
    assert (secret / "key").read_bytes() == b"hush"


def test_only_files_are_read(files: Files, root: Path) -> None:
    files.write("folder/a", b"x")
    os.mkfifo(root / "pipe")
    for path in ("folder", "pipe"):
        with pytest.raises(Unusable, match="is not a file"):
            files.open(path)
    with pytest.raises(Unusable, match="a folder where a file should be"):
        files.write("folder", b"x")
    assert everything_below(root) == {"folder", "folder/a", "pipe"}


WRITER = """
import sys
from pathlib import Path
from rowcall.base.files import Files

def pieces():
    yield b"half of it" * 100_000
    print("written half", flush=True)
    sys.stdin.read()
    yield b"the rest"

Files(Path(sys.argv[1])).write("a/b.csv", pieces())
"""


def half_written(root: Path) -> subprocess.Popen[str]:
    """Start a process that has written half of a file, and continues when its input ends."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root)],
        env={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written half\n"
    return writer


def test_a_living_writers_file_is_left_to_it(files: Files, root: Path) -> None:
    with half_written(root) as writer:
        with pytest.raises(Unavailable, match="'a/b.csv' is being written by another process"):
            files.write("a/b.csv", b"mine")
        files.write("a/c.csv", b"beside it")
        assert everything_below(root) == {"a", "a/.b.csv.part", "a/c.csv"}
        writer.communicate(timeout=60)
    assert content_of(files, "a/b.csv").endswith(b"the rest")
    assert files.write("a/b.csv", b"now mine").size == 8


def test_a_file_that_another_writers_sweep_has_locked_for_a_moment_is_written(
    files: Files, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a/first.csv", b"x")
    with (root / "a" / ".b.csv.part").open("wb") as swept:
        fcntl.flock(swept, fcntl.LOCK_EX)
        monkeypatch.setattr("rowcall.base.files.time.sleep", lambda _: swept.close())
        files.write("a/b.csv", b"whole")
    assert content_of(files, "a/b.csv") == b"whole"


@pytest.mark.parametrize("next_path", ["a/b.csv", "a/c.csv"])
def test_what_a_killed_writer_left_is_gone_with_the_next_write(files: Files, root: Path, next_path: str) -> None:
    with half_written(root) as writer:
        writer.send_signal(signal.SIGKILL)
    wait_until(lambda: writer.poll() is not None, "the writer is dead")
    assert everything_below(root) == {"a", "a/.b.csv.part"}
    files.write(next_path, b"whole")
    assert everything_below(root) == {"a", next_path}


def test_what_a_killed_writer_left_never_shines_through_in_a_process_that_was_there_before(
    files: Files, root: Path
) -> None:
    files.write("a/first.csv", b"x")
    with half_written(root) as writer:
        writer.send_signal(signal.SIGKILL)
    wait_until(lambda: writer.poll() is not None, "the writer is dead")
    files.write("a/b.csv", b"short")
    assert content_of(files, "a/b.csv") == b"short"
    assert everything_below(root) == {"a", "a/first.csv", "a/b.csv"}


LIMITED = """
import resource, sys
from pathlib import Path
from rowcall.base.errors import Unavailable
from rowcall.base.files import Files

files = Files(Path(sys.argv[1]))
files.write("a.csv", b"x" * 1000)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    files.write("a.csv", (b"y" * 10_000 for _ in range(100)))
except Unavailable as error:
    print(error.acted, error.permanent, error)
"""


def test_a_disk_without_room_is_told_and_leaves_what_was_there(root: Path, files: Files) -> None:
    # A limit of the process replaces a full disk: the same call fails in the same place.
    told = subprocess.check_output(
        [sys.executable, "-c", LIMITED, str(root)], env={"PYTHONPATH": str(ROOT)}, text=True, timeout=60
    )
    assert told.startswith(f"no False 'a.csv': no space is left in {root} (")
    assert content_of(files, "a.csv") == b"x" * 1000
    assert everything_below(root) == {"a.csv"}


def test_a_root_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("a file")
    with pytest.raises(Unavailable, match="'a.csv': the folder .*files cannot be used"):
        Files(tmp_path / "files").write("a.csv", b"x")
    with pytest.raises(Unusable, match="there is no file 'a.csv'"):
        Files(tmp_path / "none").open("a.csv")
