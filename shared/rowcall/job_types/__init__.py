"""Declarations of job types, used by the API, the command line and the worker."""

from rowcall.job_types.backoff import exponential, fixed, quadratic
from rowcall.job_types.catalogue import Catalogue, catalogue, load_catalogue
from rowcall.job_types.declaration import JobType
from rowcall.job_types.definition import Definition
from rowcall.job_types.handover import celery

__all__ = [
    "Catalogue",
    "Definition",
    "JobType",
    "catalogue",
    "celery",
    "exponential",
    "fixed",
    "load_catalogue",
    "quadratic",
]
