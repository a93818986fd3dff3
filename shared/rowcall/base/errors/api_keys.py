"""Errors of requests that concern API keys."""

from __future__ import annotations

from rowcall.base.errors.process import RowcallError


class ApiKeyInvalid(RowcallError):
    """A request for an API key has an invalid field, which `field` names."""

    def __init__(self, field: str, sentence: str) -> None:
        self.field = field
        super().__init__(sentence)


class ApiKeyNameTaken(RowcallError):
    """A valid API key, the `holder`, has this name."""

    def __init__(self, name: str, holder: int) -> None:
        self.holder = holder
        super().__init__(
            f"key {holder} has the name {name!r}: choose another name, or replace that key with `rowcall keys rotate"
            f" {holder}`, or end it with `rowcall keys revoke {holder}`"
        )


class ApiKeyNotFound(RowcallError):
    """No API key has this id."""

    def __init__(self, key_id: int) -> None:
        super().__init__(f"no key has the id {key_id}; `rowcall keys list` shows all keys")


class ApiKeyEnded(RowcallError):
    """An API key is revoked, expired or replaced, and this request needs one that is not."""
