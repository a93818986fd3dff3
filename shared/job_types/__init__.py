"""What kinds of run exist: declared once, used by the API, the command line and the worker."""

from shared.job_types.catalogue import Catalogue, catalogue, load_catalogue
from shared.job_types.declaration import JobType
from shared.job_types.definition import Definition
from shared.retry import exponential, fixed, quadratic

__all__ = ["Catalogue", "Definition", "JobType", "catalogue", "exponential", "fixed", "load_catalogue", "quadratic"]
