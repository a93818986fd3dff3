"""Names of operations (`operationId`), such as `listRuns` and `retryRun`: the functions of generated clients.

The name follows from the view's, which is a verb and a noun.  It is part of the interface: renaming a view breaks the
code that was generated from it.
"""

from __future__ import annotations

# A view shows a resource; its clients get it.
VERBS = {"show": "get"}


def operation_id(endpoint: str, method: str, own: bool, methods: int) -> str:
    """Return the name of an operation of this endpoint, such as `runs.show_run`.

    Names of Rowcall's own views are unique; those of an app keep their blueprint's name as a prefix.  A view that takes
    several methods has one name for all of them, so the method comes before it.
    """
    blueprint, _, view = endpoint.rpartition(".")
    verb, *rest = view.split("_")
    words = [VERBS.get(verb, verb), *rest] if own else [*blueprint.replace(".", "_").split("_"), *view.split("_")]
    if methods > 1:
        words.insert(0, method)
    first, *others = [word for word in words if word]
    return first + "".join(word[0].upper() + word[1:] for word in others)
