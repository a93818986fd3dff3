"""A certificate authority for one test run."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme


class Authority:
    """Issues certificates for servers; a client whose SSL_CERT_FILE names this authority trusts them."""

    def __init__(self, folder: Path) -> None:
        self._ca = trustme.CA()
        self.file = folder / "authority.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def server_context(self, *names: str) -> ssl.SSLContext:
        """Return the context of a server with these names or addresses."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names).configure_cert(context)
        return context
