"""Names of operations (`operationId`), such as `listRuns` and `retryRun`: the functions of generated clients.

An operation's name is derived from its view's name, which is a verb and a noun.  It is part of the interface: renaming
a view breaks the code of generated clients.
"""

from __future__ import annotations

# The verb of a view -> the verb of the operation: a client gets what the view shows.
VERBS = {"show": "get"}


def operation_id(endpoint: str, method: str, own: bool, methods: int) -> str:
    """Return the name of the operation with this endpoint (such as `runs.show_run`) and this method.

    Names of Rowcall's own views are unique; those of an app's views get their blueprint's name as a prefix.  A view
    that accepts several methods has only one name, so the method comes first.
    """
    blueprint, _, view = endpoint.rpartition(".")
    verb, *rest = view.split("_")
    words = [VERBS.get(verb, verb), *rest] if own else [*blueprint.replace(".", "_").split("_"), *view.split("_")]
    if methods > 1:
        words.insert(0, method)
    first, *others = [word for word in words if word]
    return first + "".join(word[0].upper() + word[1:] for word in others)
