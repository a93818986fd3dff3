"""`rowcall completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script that lets a shell complete commands and options.

    To install it, run the line for your shell once, and open a new shell:

    \b
    echo 'eval "$(rowcall completion bash)"' >> ~/.bashrc
    echo 'eval "$(rowcall completion zsh)"' >> ~/.zshrc
    rowcall completion fish > ~/.config/fish/completions/rowcall.fish
    """
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(context.find_root().command, {}, "rowcall", "_ROWCALL_COMPLETE").source())
