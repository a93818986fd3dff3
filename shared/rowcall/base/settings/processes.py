"""The settings of the database, the app, and Rowcall's own processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rowcall.base.endpoints import Networks
from rowcall.base.parsing import broker_url, database_url, environment_name, folder, module_name, number, one_of, switch
from rowcall.base.settings.declare import setting

PORT = number(int, 0, 65535)

# Under another name, because a field has the parser's.
CONNECTION_STRING = database_url


@dataclass(frozen=True)
class ProcessSettings:
    """The database, the app, the API, the operator's page, and workers."""

    database_url: str | None = setting(
        "DATABASE_URL",
        database_url,
        None,
        "URL of the PostgreSQL database; without it, Rowcall uses the local server that `rowcall up` created.",
        secret=True,
    )
    home: Path = setting(
        "ROWCALL_HOME",
        folder,
        Path(".rowcall"),
        "Folder for the local server's data and for what `rowcall up` writes.",
    )
    postgres: str | None = setting(
        "ROWCALL_POSTGRES",
        one_of("auto", "machine", "wheel"),
        None,
        "Which PostgreSQL programs the local server uses: `machine` (those installed on this machine), `wheel` (those"
        " of the extra `local`), or `auto` (the first of these that it finds). If it is set, every command creates a"
        " local server where there is none; otherwise only `rowcall up` does.",
    )
    postgres_port: int = setting(
        "ROWCALL_POSTGRES_PORT", PORT, 0, "Port of the local server on loopback; 0 picks a free port."
    )
    app: str | None = setting(
        "ROWCALL_APP",
        module_name,
        None,
        "Your app's package: all processes import its `job_types`, workers also its `handlers`, the API its `routes`.",
    )
    api_host: str = setting("ROWCALL_API_HOST", str.strip, "127.0.0.1", "Address the API listens on.")
    api_port: int = setting("ROWCALL_API_PORT", PORT, 8000, "Port the API listens on; 0 picks a free port.")
    api_workers: int = setting(
        "ROWCALL_API_WORKERS", number(int, 1, 64), 2, "Number of processes that answer requests."
    )
    api_threads: int = setting(
        "ROWCALL_API_THREADS", number(int, 1, 64), 4, "Number of threads in each of these processes."
    )
    read_url: str | None = setting(
        "ROWCALL_READ_URL",
        CONNECTION_STRING,
        None,
        "URL of a hot standby of the database, from which the API reads lists, counts, charts and metrics; without it,"
        " everything is read from the leader.",
        secret=True,
    )
    rate_limit: float = setting(
        "ROWCALL_RATE_LIMIT",
        number(float, 0, 100_000),
        50.0,
        "Requests per second that one API key can make on average, divided among the API's processes; 0 for no limit.",
    )
    rate_burst: int = setting(
        "ROWCALL_RATE_BURST",
        number(int, 1, 100_000),
        100,
        "Requests that one API key can make in a burst, divided among the API's processes.",
    )
    trusted_proxies: Networks | None = setting(
        "ROWCALL_TRUSTED_PROXIES",
        Networks.parse,
        None,
        "Addresses or networks of your own proxies, separated by commas. The API counts wrong keys per client, and"
        " takes the client's address from X-Forwarded-For only if the request comes from one of these.",
    )
    environment: str | None = setting(
        "ROWCALL_ENVIRONMENT",
        environment_name,
        None,
        "Name of this environment, such as `production`, `staging` or `local`; every screen of the operator's page"
        " shows it in a colour. Without it, the page shows the name of the database.",
    )
    page_without_tls: bool = setting(
        "ROWCALL_PAGE_WITHOUT_TLS",
        switch,
        False,
        "`on` allows changes on the operator's page over plain HTTP from any address. Without it, only a browser on"
        " this machine can make changes over plain HTTP.",
    )
    metrics_public: bool = setting(
        "ROWCALL_METRICS_PUBLIC",
        switch,
        False,
        "`on` makes /metrics public; otherwise it needs a key with the scope `read`.",
    )
    lease: float = setting(
        "ROWCALL_LEASE",
        number(float, 1, 86400),
        120.0,
        "How long a worker may hold a run without a heartbeat.",
        unit="seconds",
    )
    heartbeat: float = setting(
        "ROWCALL_HEARTBEAT",
        number(float, 0.1, 28800),
        30.0,
        "How often a worker renews its leases; at most a third of the lease.",
        unit="seconds",
    )
    concurrency: int = setting(
        "ROWCALL_CONCURRENCY", number(int, 1, 1000), 10, "How many runs a worker process performs at a time."
    )
    broker_url: str | None = setting(
        "ROWCALL_BROKER_URL",
        broker_url,
        None,
        "Broker for job types that hand their runs over to Celery, as Celery's own setting `broker_url`:"
        " `amqp://user:password@host:5672//`, `redis://host:6379/0` or `sqs://`.",
        secret=True,
    )
    poll: float = setting(
        "ROWCALL_POLL",
        number(float, 0.01, 3600),
        1.0,
        "How often an idle worker polls for due runs, retries, expired leases and schedules.",
        unit="seconds",
    )
    grace: float = setting(
        "ROWCALL_GRACE",
        number(float, 0, 3600),
        25.0,
        "How long running handlers may continue after a worker gets the signal to stop.",
        unit="seconds",
    )
    worker_metrics_port: int | None = setting(
        "ROWCALL_WORKER_METRICS_PORT",
        PORT,
        None,
        "Port on which `rowcall worker run` serves metrics; 0 picks a free port. Without it, the worker serves none.",
    )
    worker_metrics_host: str = setting(
        "ROWCALL_WORKER_METRICS_HOST",
        str.strip,
        "127.0.0.1",
        "Address on which a worker serves its metrics. They need no key, and contain no payloads.",
    )
    tick_bound: int = setting(
        "ROWCALL_TICK_BOUND",
        number(int, 1, 100_000),
        500,
        "Maximum number of nominal times of one definition that one tick processes; the next tick continues.",
    )
    lock_timeout: float = setting(
        "ROWCALL_LOCK_TIMEOUT",
        number(float, 0.1, 3600),
        3.0,
        "How long a migration waits for a table lock before it releases its own locks and tries again.",
        unit="seconds",
    )
