"""Specification: what a process's end makes of lines that its daemon threads are writing."""

import os
import subprocess
import sys

import pytest

# A thread that the process does not wait for writes all the time, into a pipe that nobody reads.
FLOODS = """
import sys, threading, time
from rowcall.base.logs import log
sys.stderr = open(2, "w", buffering=1, closefd=False)
def flood():
    while True:
        log().info("flood", filler="x" * 5000)
thread = threading.Thread(target=flood, daemon=True)
thread.start()
time.sleep(1)  # long enough to fill the pipe; if it were not, the process would end all the same
print("ends", flush=True)
"""


def test_a_process_ends_while_a_thread_of_its_own_is_in_the_middle_of_a_line() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb"), os.fdopen(write, "wb") as pipe:
        process = subprocess.Popen([sys.executable, "-c", FLOODS], stderr=pipe, stdout=subprocess.PIPE, text=True)
        try:
            out, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail("the process waits for a line that nobody reads")
    assert (process.returncode, out) == (0, "ends\n")
