# The server with the official docs inside: a container that starts answers at once, without network.
ARG PYTHON_IMAGE=python:3.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS base
# git and the certificates are needed twice: for the docs of the image, and for newer ones later.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    IMAGE_DIR=/image
WORKDIR /srv

FROM base AS build
COPY requirements.lock ./
RUN python -m venv /opt/venv \
    && pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock
COPY app app
COPY data data
COPY deploy/probe.py LICENSE ./
RUN python -m compileall -q app probe.py

# The docs as of a commit that builds with this version were tried with; the running server fetches
# newer ones. LIARA_DOCS_REF=none leaves them out on purpose; anything else has to succeed.
ARG LIARA_DOCS_SOURCE=https://github.com/liara-cloud/docs.git
ARG LIARA_DOCS_REF=618c1542b87fd3469044c211ba46c2b4dc0d778a
RUN mkdir -p "$IMAGE_DIR/sets" \
    && if [ "$LIARA_DOCS_REF" = none ]; then \
        echo "WARNING: no official docs in this image: starter pages answer until it fetches them" >&2; \
    else \
        DATA_DIR="$IMAGE_DIR" python -m app sync --source "$LIARA_DOCS_SOURCE" --ref "$LIARA_DOCS_REF" liara > /tmp/sync.txt; \
        status=$?; cat /tmp/sync.txt; \
        [ "$status" = 0 ] && grep -q "^liara: fresh" /tmp/sync.txt \
        || { echo "ERROR: no docs from $LIARA_DOCS_SOURCE at $LIARA_DOCS_REF" >&2; exit 1; }; \
        rm -rf "$IMAGE_DIR/starter" "$IMAGE_DIR/sets/liara/checkout" "$IMAGE_DIR/sets/liara/lock"; \
    fi

FROM base
# A number, so that a platform can see that it is not root. APP_UID=0 is for disks that only root
# may write to.
ARG APP_UID=65532
RUN install -d -o "$APP_UID" -g "$APP_UID" /data
COPY --from=build /opt/venv /opt/venv
COPY --from=build /srv /srv
COPY --from=build /image /image
# No VOLUME: Liara asks to leave it out and to mount a disk instead; compose.yml names a volume.
# `docker stop` kills after ten seconds: requests in flight get eight of them.
ENV HOST=0.0.0.0 \
    PORT=8000 \
    DATA_DIR=/data \
    SHUTDOWN_SECONDS=8 \
    PYTHONDONTWRITEBYTECODE=1
USER ${APP_UID}:${APP_UID}
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 CMD ["python", "/srv/probe.py"]
CMD ["python", "-m", "app", "serve"]
