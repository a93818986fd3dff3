"""Groups of commands, listed in the order of use."""

from __future__ import annotations

import difflib

import click


class Group(click.Group):
    """A group as click has it, except that its help cuts no sentence and keeps the order of declaration."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest the nearest name for an unknown one, also where commands are not loaded yet."""
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-")) and self.get_command(ctx, name) is None:
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            raise click.UsageError(f"No such command {name!r}.{f'  Did you mean {near[0]!r}?' if near else ''}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each command's help, whole."""
        listed = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(command)) for name, command in listed if _is_shown(command)])


def _is_shown(command: click.Command | None) -> bool:
    return command is not None and not command.hidden


def _first_sentence(command: click.Command | None) -> str:
    return command.get_short_help_str(limit=1000) if command else ""
