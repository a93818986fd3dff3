"""Groups of commands, listed in the order of use."""

from __future__ import annotations

import difflib

import click
from click.shell_completion import CompletionItem


class Group(click.Group):
    """A click group whose help truncates no sentence and keeps the order of declaration."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest the nearest name for an unknown one, even if commands are not loaded yet."""
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-")) and self.get_command(ctx, name) is None:
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            raise click.UsageError(f"No such command {name!r}.{f'  Did you mean {near[0]!r}?' if near else ''}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first sentence of each command's help, untruncated."""
        listed = [(name, self.outline(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, sentence in listed if sentence is not None])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin with this text, each with the first sentence of its help, and the options."""
        begun = [(name, self.outline(ctx, name)) for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=sentence) for name, sentence in begun if sentence is not None]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def outline(self, ctx: click.Context, name: str) -> str | None:
        """Return the first sentence of a command's help, or None for a hidden command."""
        command = self.get_command(ctx, name)
        return None if command is None or command.hidden else command.get_short_help_str(limit=1000)
