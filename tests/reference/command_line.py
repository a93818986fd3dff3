"""The command line: the help of every command."""

from __future__ import annotations

from collections.abc import Iterator

import click

from rowcall.cli.main import OWN, rowcall
from tests.reference.markdown import head

WIDTH = 100


def page() -> str:
    """Return docs/reference/command-line.md."""
    lines = head("The command line", "the commands themselves")
    lines += ["`rowcall COMMAND --help` prints the same text.", ""]
    root = click.Context(rowcall, info_name="rowcall", max_content_width=WIDTH, terminal_width=WIDTH)
    for context in commands(root):
        lines += [f"{'#' * min(2 + context.command_path.count(' ') - 1, 3)} {context.command_path}", "", "```text"]
        lines += [line.rstrip() for line in context.command.get_help(context).splitlines()]
        lines += ["```", ""]
    return "\n".join(lines).rstrip() + "\n"


def commands(context: click.Context) -> Iterator[click.Context]:
    """Yield each of Rowcall's own commands below this one, in the order of use, each with its own commands."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in OWN if group is rowcall else group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        own = click.Context(
            command, context, name, terminal_width=WIDTH, max_content_width=WIDTH, help_option_names=["-h", "--help"]
        )
        yield own
        if isinstance(command, click.Group):
            yield from commands(own)
