"""What root lends to an ordinary user for a test: copies of Rowcall, the wheel and Python that the user may read."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from rowcall.local_postgres.programs import wheel_package
from tests.local_postgres.processes import PROJECT


def lend(folder: Path) -> dict[str, Any]:
    """Fill this folder, and return how to start a script as the user `nobody`, who cannot enter root's folders."""
    nobody = pwd.getpwnam("nobody")
    folder.chmod(0o755)
    project = folder / "project"
    shutil.copytree(PROJECT / "rowcall", project / "rowcall")
    package = wheel_package()
    assert package is not None, "these tests need the wheel: pip install 'rowcall[local]'"
    for part in package.parent.glob(f"{package.name}*"):
        shutil.copytree(part, project / part.name, ignore=shutil.ignore_patterns("*.a", "include"))
    python = Path(sys.executable).resolve()
    if not _runs(python, nobody):
        python = _copy_python(python, folder / "python")
        assert _runs(python, nobody), f"not even a copy of {sys.executable} runs as another user: {python}"
    return {"python": str(python), "project": project, "user": nobody.pw_uid, "group": nobody.pw_gid}


def _runs(python: Path, user: pwd.struct_passwd) -> bool:
    command = [str(python), "-I", "-c", "import ctypes, json"]
    try:
        done = subprocess.run(
            command, cwd="/", user=user.pw_uid, group=user.pw_gid, extra_groups=[], check=False, capture_output=True
        )
    except OSError:
        return False
    return done.returncode == 0


def _copy_python(python: Path, folder: Path) -> Path:
    """Copy this interpreter and its standard library, which it finds relative to itself."""
    prefix = Path(sys.base_prefix)
    library = Path(sysconfig.get_path("stdlib"))
    useless = shutil.ignore_patterns("site-packages", "test", "tests", "config-*", "idlelib", "ensurepip")
    shutil.copytree(library, folder / library.relative_to(prefix), ignore=useless)
    for shared_object in (*prefix.glob("lib/libpython*.so*"), *prefix.glob("lib/libffi*.so*")):
        shutil.copy2(shared_object, folder / "lib" / shared_object.name)
    copied = folder / "bin" / python.name
    copied.parent.mkdir()
    # If built with a shared library, it has an absolute path to that; the copy's library is beside the copy.
    built_for = os.fsencode(str(sysconfig.get_config_var("LIBDIR")))
    beside = b"$ORIGIN/../lib".ljust(len(built_for), b"\0")
    copied.write_bytes(python.read_bytes().replace(built_for + b"\0", beside + b"\0"))
    copied.chmod(0o755)
    return copied
