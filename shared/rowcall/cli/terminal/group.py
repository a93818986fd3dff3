"""Groups of commands, listed in the order of use."""

from __future__ import annotations

import click


class Group(click.Group):
    """A group as click has it, except that its help cuts no sentence and keeps the order of declaration."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they were added."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each command's help, whole."""
        listed = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(command)) for name, command in listed if _is_shown(command)])


def _is_shown(command: click.Command | None) -> bool:
    return command is not None and not command.hidden


def _first_sentence(command: click.Command | None) -> str:
    return command.get_short_help_str(limit=1000) if command else ""
