"""The catalogue: all job types that this process knows, Rowcall's own and the app's."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from rowcall.base import settings
from rowcall.base.errors import DeclarationError, JobTypeUnknown
from rowcall.job_types import alerting, builtin, housekeeping
from rowcall.job_types.declaration import JobType
from rowcall.job_types.definition import Definition

WITHOUT_APP = "ROWCALL_APP is not set, so only Rowcall's own job types are known; set it to the package that has yours"


class Catalogue(Mapping[str, JobType]):
    """The job types by name; the error for an unknown name lists the known ones, and may add a hint."""

    def __init__(self, *modules: ModuleType, hint: str = "", app: str | None = None) -> None:
        self._hint = hint
        self._app = app
        self._types: dict[str, JobType] = {}
        self._definitions: dict[str, Definition] = {}
        for module in modules:
            for found in vars(module).values():
                if isinstance(found, JobType) and self._types.setdefault(found.name, found) is not found:
                    raise DeclarationError(_taken("job type", found.name, module))
                if isinstance(found, Definition) and self._definitions.setdefault(found.name, found) is not found:
                    raise DeclarationError(_taken("definition", found.name, module))
        self._check_limits()

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The definitions that are declared in code, by name."""
        return self._definitions

    def _check_limits(self) -> None:
        """Refuse a max_running on a shared queue: claims would have to skip the type's waiting runs to reach others."""
        for name, kind in self._types.items():
            sharing = [other for other in self._types if other != name and self._types[other].queue == kind.queue]
            if kind.max_running is not None and sharing:
                raise DeclarationError(
                    f"job type {name!r}: max_running is {kind.max_running} and needs a separate queue;"
                    f" queue is {kind.queue!r}, which {sharing[0]!r} uses too: choose another, such as {name!r}"
                )

    @property
    def queues(self) -> set[str]:
        """The queues of the types."""
        return {kind.queue for kind in self._types.values()}

    @property
    def limits(self) -> dict[str, int]:
        """The queues whose type has a max_running, with that limit."""
        return {kind.queue: kind.max_running for kind in self._types.values() if kind.max_running is not None}

    def lacks(self, name: str) -> str | None:
        """Return a sentence that says why this process does not know a job type, or None if it does."""
        if name in self:
            return None
        if self._app is None:
            return f"ROWCALL_APP is not set, and Rowcall itself has no type {name}"
        return f"ROWCALL_APP={self._app} has no type {name}"

    def __getitem__(self, name: str) -> JobType:
        try:
            return self._types[name]
        except KeyError:
            raise JobTypeUnknown(name, sorted(self._types), self._hint) from None

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


def _taken(what: str, name: str, module: ModuleType) -> str:
    return f"{what} {name!r}: {module.__name__} declares a name that is taken; choose another"


def load_catalogue(app: str | None) -> Catalogue:
    """Load the catalogue of this app; without an app, only Rowcall's own types."""
    if app is None:
        return Catalogue(builtin, housekeeping, alerting, hint=WITHOUT_APP)
    return Catalogue(builtin, housekeeping, alerting, app_module(app, "job_types"), app=app)


def app_module(app: str, name: str) -> ModuleType:
    """Import a module of the app, or raise an error that says where Python looked.

    The working folder comes last on the path, so that a local package with the name of an installed one does not
    replace it.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(f"{app}.{name}")
    except DeclarationError:
        raise
    except (Exception, SystemExit) as error:  # an app's sys.exit() would end the process without a word
        if isinstance(error, ModuleNotFoundError) and f"{app}.{name}.".startswith(f"{error.name}."):
            raise DeclarationError(f"ROWCALL_APP is {app!r}, {_missing(app, name)}") from None
        raise DeclarationError(
            f"ROWCALL_APP is {app!r}, and importing {app}.{name} failed{_line_of(error, app)}:"
            f" {type(error).__name__}: {error}{_driver(error)}"
        ) from error


def _missing(app: str, name: str) -> str:
    """Say which file to write if the app is a package or a single file, else where Python would find the package."""
    found = sys.modules.get(app)
    places = [str(place) for place in getattr(found, "__path__", ())]
    if places:
        return f"and there is no module {app}.{name}: write {Path(places[0], name)}.py"
    if file := getattr(found, "__file__", None):
        return (
            f"which is the file {file} and not a package: make a package, such as {Path.cwd() / 'jobs'}/ with"
            f" {name}.py, and set ROWCALL_APP=jobs"
        )
    return (
        f"and there is no module {app}.{name} on Python's path: start Rowcall in the folder that contains the package,"
        " or install it"
    )


def _driver(error: BaseException) -> str:
    """Return a remedy if SQLAlchemy 2.1, whose default driver has changed, cannot import that driver."""
    frames = traceback.extract_tb(error.__traceback__)
    if getattr(error, "name", None) != "psycopg" or not any("sqlalchemy" in Path(one.filename).parts for one in frames):
        return ""
    return (
        "; SQLAlchemy 2.1 uses psycopg 3 for postgresql://: write postgresql+psycopg2:// in your app's URL to use"
        " psycopg2, which Rowcall installs"
    )


def _line_of(error: BaseException, app: str) -> str:
    """Return the line of the app where an import failed, if the traceback shows it."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if app in Path(frame.filename).parts]
    return f" at {own[-1].filename}, line {own[-1].lineno}" if own else ""


def optional_app_module(app: str, name: str) -> ModuleType | None:
    """Import a module that an app may leave out; a module that exists but cannot be imported is an error."""
    app_module(app, "job_types")  # every app must have this one; if it is missing, report that first
    return app_module(app, name) if importlib.util.find_spec(f"{app}.{name}") else None


@functools.cache
def catalogue() -> Catalogue:
    """Return the catalogue of ROWCALL_APP, loaded at the first call."""
    return load_catalogue(settings.read().app)
