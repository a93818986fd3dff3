"""`rowcall doctor`: show the settings, find problems, and say how to fix them; the problems come last."""

from __future__ import annotations

import sys

import click

from rowcall.base import settings
from rowcall.base.errors import SettingsError
from rowcall.cli.doctor.examine import examine
from rowcall.cli.doctor.finding import Finding
from rowcall.cli.terminal.output import json_option, show_json, wrapped
from rowcall.cli.terminal.table import Table


@click.command("doctor")
@click.option("--verbose", is_flag=True, help="Also show the settings that have their defaults.")
@json_option
def doctor_command(verbose: bool, as_json: bool) -> None:
    """Show the settings that are set, and look for problems.  The exit code is 1 if there are any."""
    try:
        current = settings.read()
    except SettingsError as error:
        values, findings = [], [Finding("settings", False, str(error))]
    else:
        values = [
            {
                "setting": setting.variable,
                "value": setting.shown(getattr(current, name)),
                "source": settings.source(name),
            }
            for name, setting in settings.all_settings().items()
        ]
        findings = examine(current)
    if as_json:
        show_json({"settings": values, "findings": [vars(finding) for finding in findings]})
    else:
        _show(values, findings, verbose)
    sys.exit(0 if all(finding.good for finding in findings) else 1)


def _show(values: list[dict[str, str]], findings: list[Finding], verbose: bool) -> None:
    """Print the problems last, where a terminal shows them."""
    shown = [value for value in values if verbose or value["source"] != "default"]
    if shown:
        Table().show(shown, ("setting", "value", "source"))
        click.echo()
    for finding in sorted(findings, key=lambda finding: not finding.good):
        mark = click.style("ok  ", fg="green") if finding.good else click.style("FIX ", fg="red", bold=True)
        click.echo(f"{mark}  {wrapped(f'{finding.subject}: {finding.message}', indent=6)}")
