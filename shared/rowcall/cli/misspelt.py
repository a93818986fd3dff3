"""Misspelt settings: variables that look like Rowcall's and set nothing."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping

from rowcall.base.settings import all_settings

PREFIX = "ROWCALL_"


def misspelt_settings(environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield a sentence for each, with the setting that was probably meant."""
    settings = all_settings().values()
    known = {one.variable for one in settings} | {one.file_variable for one in settings if one.secret}
    # Compared without the prefix, which would make any two alike.
    endings = {name.removeprefix(PREFIX): name for name in known}
    for name in sorted(environment.keys() - known):
        # An empty variable counts as not set, whatever its name.
        if name.startswith(PREFIX) and environment[name].strip():
            near = difflib.get_close_matches(name.removeprefix(PREFIX), endings, n=1)
            yield f"{name} is not a setting{f'; did you mean {endings[near[0]]}?' if near else ''}"
