# reconciler in a small image, for CI jobs and cron. To build it, pin the base image by the digest that
# `docker pull python:3.13-slim` prints (the digest below is a placeholder):
#
#   docker build --build-arg PYTHON_DIGEST=sha256:... --build-arg COMMIT="$(git rev-parse HEAD)" --tag reconciler .
#
# In a CI job, the runner starts its own shell: empty the entry point:
#
#   image: {name: IMAGE, entrypoint: [""]}
#   script: [reconciler plan manifests]
#
# Elsewhere, run the image as a command:
#
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/repository" -e RECONCILER_API_URL -e RECONCILER_TOKEN IMAGE plan manifests

ARG PYTHON_IMAGE=python:3.13-slim
ARG PYTHON_DIGEST=sha256:0000000000000000000000000000000000000000000000000000000000000000

FROM ${PYTHON_IMAGE}@${PYTHON_DIGEST} AS build
ARG COMMIT
WORKDIR /src
COPY . .
RUN SOURCE_COMMIT="$COMMIT" pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .
RUN python -m venv --without-pip /opt/reconciler
RUN pip --python /opt/reconciler install --no-cache-dir /wheels/*.whl

FROM ${PYTHON_IMAGE}@${PYTHON_DIGEST}
ARG COMMIT
LABEL org.opencontainers.image.title="reconciler" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.description="Manage the settings of hundreds of GitLab projects as code: plan, apply, drift." \
      org.opencontainers.image.licenses="MIT"
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/reconciler /opt/reconciler
# --since reads the checkout with git; in a CI job, the checkout belongs to another user.
ENV PATH="/opt/reconciler/bin:$PATH" \
    GIT_CONFIG_COUNT="1" \
    GIT_CONFIG_KEY_0="safe.directory" \
    GIT_CONFIG_VALUE_0="*"
USER 10001:10001
WORKDIR /repository
HEALTHCHECK NONE
ENTRYPOINT ["reconciler"]
CMD ["--help"]
