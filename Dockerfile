# One image for all of Rowcall's processes; compose.yaml shows how they stand together.
FROM python:3.13-slim AS build
WORKDIR /build

# Dependencies first: they change least often, so a change of code finds this layer made.
COPY requirements/build.lock requirements/runtime.lock requirements/
RUN python -m venv --without-pip /opt/rowcall \
    && python -m pip --python /opt/rowcall/bin/python install --no-cache-dir --require-hashes -r requirements/runtime.lock
# The build tool has an environment of its own, which stays behind in this stage.
RUN python -m venv --without-pip tools \
    && python -m pip --python tools/bin/python install --no-cache-dir --require-hashes -r requirements/build.lock

COPY pyproject.toml README.md LICENSE ./
COPY shared shared
COPY api api
COPY worker worker
COPY migrations migrations
COPY example example
# Installed as a wheel, because an app's commands are found in the metadata of what is installed; no index is asked.
RUN tools/bin/python -m hatchling build -t wheel \
    && python -m pip --python /opt/rowcall/bin/python install --no-cache-dir --no-deps --no-index dist/*.whl

FROM python:3.13-slim
LABEL org.opencontainers.image.title="Rowcall" \
      org.opencontainers.image.description="Scheduled background jobs on nothing but PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0"
# The user has a name too, because the audit log records who sat at the command line.
# Handlers write their files below /var/lib/rowcall; a new volume mounted there takes over whose it is.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin rowcall \
    && install -d -o 10001 -g 10001 -m 700 /var/lib/rowcall
COPY --from=build /opt/rowcall /opt/rowcall
# /app is for a team's own package: an image built on this one copies it there and sets ROWCALL_APP.
WORKDIR /app
# pip has compiled everything already, so nothing is ever written beside the code.
ENV PATH=/opt/rowcall/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    ROWCALL_HOME=/var/lib/rowcall \
    ROWCALL_API_HOST=0.0.0.0 \
    ROWCALL_API_PORT=8000
# By number, so that a cluster can see that it is not root.
USER 10001:10001
EXPOSE 8000
# Both gunicorn and the worker finish what they hold when they get this.
STOPSIGNAL SIGTERM
ENTRYPOINT ["rowcall"]
CMD ["api"]
