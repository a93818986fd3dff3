"""Mount the app's own routes, from its module `routes`, alongside Rowcall's, without clashes."""

from __future__ import annotations

import re
from types import ModuleType

import flask
from werkzeug.routing import Map, Rule

from rowcall.base.errors import DeclarationError
from rowcall.job_types.catalogue import optional_app_module
from rowcall_api.app_routes import Blueprint, Problem
from rowcall_api.http import guard, invalid, openapi
from rowcall_api.http.errors import problem


def mount(app: flask.Flask, described: openapi.Interface, package: str) -> None:
    """Mount the blueprints of the package's module `routes`, if it has one; call it after mounting Rowcall's own."""
    app.register_error_handler(Problem, _answered)
    module = optional_app_module(package, "routes")
    if module is None:
        return
    for blueprint in _blueprints(module):
        if blueprint.name in app.blueprints:
            raise DeclarationError(f"{module.__name__}: the blueprint name {blueprint.name!r} is taken; choose another")
        guard.protect(app, blueprint.name)
        described.register_blueprint(blueprint)
    _check_paths(module, app)


def _blueprints(module: ModuleType) -> list[Blueprint]:
    """Return the blueprints in the module, each once."""
    found: dict[int, Blueprint] = {}
    for value in vars(module).values():
        if isinstance(value, Blueprint):
            found[id(value)] = value
        elif isinstance(value, flask.Blueprint):
            raise DeclarationError(
                f"{module.__name__}: blueprint {value.name!r} is a plain Flask blueprint, which Rowcall cannot check or"
                " document: create it with `Blueprint` from rowcall_api.app_routes"
            )
    return list(found.values())


def _check_paths(module: ModuleType, app: flask.Flask) -> None:
    """Refuse a route if its path equals one of Rowcall's, is below one, or matches a request for one."""
    rules = list(app.url_map.iter_rules())
    theirs = [rule for rule in rules if guard.protects(app, rule.endpoint)]
    own = [rule for rule in rules if not guard.protects(app, rule.endpoint)]
    reserved = sorted({_reserved(rule.rule) for rule in own})
    examples = [*reserved, *(re.sub(r"<[^>]*>", "1", rule.rule) for rule in own)]
    for rule in theirs:
        below = [path for path in reserved if rule.rule == path or rule.rule.startswith(f"{path}/")]
        met = [path for path in examples if _leads_to(rule, path, app.url_map)]
        if below or met:
            clash = (below or met)[0]
            raise DeclarationError(
                f"{module.__name__}: the path {rule.rule} of {rule.endpoint} clashes with Rowcall's own {clash};"
                " choose another"
            )


def _reserved(path: str) -> str:
    """Return the part of a path that Rowcall reserves with everything below it, such as /v1/runs or /docs."""
    parts = path.split("/")
    return "/".join(parts[:3] if path.startswith(f"{guard.API}/") else parts[:2])


def _leads_to(rule: Rule, path: str, paths: Map) -> bool:
    """Return whether this rule matches the path when no other rule competes."""
    alone = Map([rule.empty()], converters=paths.converters, merge_slashes=False)
    return alone.bind("localhost").test(path, method=min(rule.methods or {"GET"}))


def _answered(error: Problem) -> flask.Response:
    """Return an app's `Problem` as a problem document."""
    more = {"errors": invalid.from_fields(error.errors)} if error.errors else {}
    return problem(error.type, error.type.replace("-", " "), error.status, str(error), **more)
