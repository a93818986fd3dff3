"""`rowcall webhook-secret`."""

from __future__ import annotations

import base64

import click

from rowcall.base import settings
from rowcall.base.endpoints import HttpUrl, endpoint_secret
from rowcall.base.errors import NotConfigured


@click.command("webhook-secret")
@click.argument("url")
def webhook_secret_command(url: str) -> None:
    """Print the secret that the receiver at URL uses to verify webhooks.

    Each URL has a separate secret, derived from ROWCALL_WEBHOOK_SECRET.  During a rotation there are two; the new one
    is printed first.
    """
    secrets = settings.read().webhook_secrets
    if not secrets:
        raise NotConfigured("webhooks cannot be signed: set ROWCALL_WEBHOOK_SECRET")
    try:
        target = HttpUrl.parse(url)
    except ValueError as error:
        raise click.BadParameter(f"{url!r} must be {error}", param_hint="URL") from None
    for secret in secrets:
        click.echo(f"whsec_{base64.b64encode(endpoint_secret(secret, target)).decode()}")
