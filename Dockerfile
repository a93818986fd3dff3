# One image for all of Rowcall's processes; compose.yaml shows how to run them together.
# Pinned by digest, so that each build is the same; docs/deploy.md says how to update it, in both stages.
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
WORKDIR /build

# Dependencies first: they change rarely, so this layer is cached when only the code changes.
COPY requirements/build.lock requirements/runtime.lock requirements/
RUN python -m venv --without-pip /opt/rowcall \
    && python -m pip --python /opt/rowcall/bin/python install --no-cache-dir --require-hashes -r requirements/runtime.lock
# The build tool has a separate environment, which is not copied to the final image.
RUN python -m venv --without-pip tools \
    && python -m pip --python tools/bin/python install --no-cache-dir --require-hashes -r requirements/build.lock

COPY pyproject.toml README.md LICENSE ./
COPY shared shared
COPY api api
COPY worker worker
COPY migrations migrations
COPY example example
# Install a wheel, because commands of apps are found in the metadata of installed packages; --no-index: no downloads.
RUN tools/bin/python -m hatchling build -t wheel \
    && python -m pip --python /opt/rowcall/bin/python install --no-cache-dir --no-deps --no-index dist/*.whl

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
LABEL org.opencontainers.image.title="Rowcall" \
      org.opencontainers.image.description="Scheduled background jobs on nothing but PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0"
# The user has a name, because the audit log records who runs a command.
# Handlers write files in /var/lib/rowcall; a new volume that is mounted there gets the same owner.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin rowcall \
    && install -d -o 10001 -g 10001 -m 700 /var/lib/rowcall
COPY --from=build /opt/rowcall /opt/rowcall
# /app is for your app: build an image from this one, copy your package to /app, and set ROWCALL_APP.
WORKDIR /app
# pip has already compiled everything, so Python need not write bytecode.
ENV PATH=/opt/rowcall/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    ROWCALL_HOME=/var/lib/rowcall \
    ROWCALL_API_HOST=0.0.0.0 \
    ROWCALL_API_PORT=8000
# A number, so that Kubernetes can verify that the user is not root.
USER 10001:10001
EXPOSE 8000
# On SIGTERM, gunicorn finishes its requests and the worker its runs.
STOPSIGNAL SIGTERM
ENTRYPOINT ["rowcall"]
CMD ["api"]
