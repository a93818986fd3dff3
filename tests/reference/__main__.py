"""`make docs`: write the pages in docs/reference/, and the examples of the API."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rowcall.local_postgres.server import open_server
from rowcall.testing.server import UNSAFE_AND_FAST
from rowcall_api.document.examples import FILE
from rowcall_migrations.migrate import migrate
from tests.reference import examples
from tests.reference.markdown import FOLDER
from tests.reference.pages import pages

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, open_server(Path(home), options=UNSAFE_AND_FAST) as server:
        migrate(server.url, lock_timeout=3)
        written = pages(server.url)
        FILE.write_text(examples.page(server.url))
    FOLDER.mkdir(exist_ok=True)
    for name, text in written.items():
        (FOLDER / name).write_text(text)
