# kdrun in a container. Use the image on one machine, or for every pod of a run on Kubernetes.
#
#   docker build -t kdrun .                                   for machines without GPUs; 1.6 GiB
#   docker build -t kdrun:cuda --build-arg FLAVOUR=cuda .     with PyTorch's CUDA libraries; about 5.3 GiB
#
# kdrun writes results to /scratch. Mount a folder of yours there, and run the container as yourself:
#
#   mkdir -p out
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD/out:/scratch" kdrun submit --problem vit_block
#
# Without --user, the user is 10001, and the folder must belong to that user: sudo chown 10001 out
#
# BASE is a Debian with Python 3.11 or newer. If builds must be reproducible, pin it by digest:
# --build-arg BASE=docker.io/library/python@sha256:...
ARG BASE=docker.io/library/python:3.11-slim-bookworm


# kdrun's dependencies change seldom. So they have their own environment, and their own layer.
FROM ${BASE} AS dependencies
ARG FLAVOUR=cpu
ARG TORCH=torch==2.13.0
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/kdrun
# The lock has the version and hash of every package but torch and kdrun itself. `make lock` writes it.
COPY configs/image.lock ./
RUN /opt/kdrun/bin/pip install -q --require-hashes --no-deps -r image.lock
# torch is not in the lock, because its two builds differ. The CPU build has an exact name, so that no
# index can answer with the CUDA packages. As in the Makefile, pip first tries the indexes of its own configuration.
# The CUDA build's name is only the version, so the command below checks that the build is for CUDA. PyPI's build is for
# CUDA 13. For older drivers, name another build with --build-arg TORCH=...
RUN case "$FLAVOUR" in \
      cpu) /opt/kdrun/bin/pip install -q "${TORCH}+cpu" 2>/dev/null \
             || /opt/kdrun/bin/pip install -q "${TORCH}+cpu" --extra-index-url "${TORCH_INDEX}" ;; \
      cuda) /opt/kdrun/bin/pip install -q "${TORCH}" && /opt/kdrun/bin/python -c \
             "import torch; v = torch.version; assert v.cuda, f'torch {v.__version__}: not for CUDA'" ;; \
      *) echo "FLAVOUR=$FLAVOUR: cpu or cuda" >&2; exit 1 ;; \
    esac \
    && /opt/kdrun/bin/pip check


# kdrun itself changes often. So it has its own folder, and its own layer.
FROM dependencies AS kdrun
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY data/samples data/samples
COPY data/manifest.txt data/manifest.txt
COPY runner runner
COPY kdrun kdrun
RUN /opt/kdrun/bin/pip install -q --no-deps --target /opt/app .


FROM ${BASE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="kdrun" \
      org.opencontainers.image.description="Takes PyTorch models apart into kernels at their exact shapes, and proves that the parts recompose." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="MIT"
# tini reaps the children of processes that died, and passes signals on.
# KubeRay starts Ray with a login shell, which resets PATH. The file in profile.d sets PATH again.
# Any user may write to /scratch, so that `docker run --user` also works without a volume.
RUN apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends tini > /dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log \
    && useradd --uid 10001 --no-create-home --home-dir /tmp kdrun \
    && install -d -m 1777 /scratch \
    && echo 'export PATH=/opt/app/bin:/opt/kdrun/bin:$PATH' > /etc/profile.d/kdrun.sh
COPY --from=dependencies /opt/kdrun /opt/kdrun
COPY --from=kdrun /opt/app /opt/app
# HOME and USER are for users without a name in the image (`docker run --user`).
ENV PATH=/opt/app/bin:/opt/kdrun/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/app \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    USER=kdrun \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
# The user is a number, because Kubernetes cannot see from a name that the user is not root.
USER 10001:10001
# kdrun writes only to /scratch and /tmp: docker run --read-only --tmpfs /tmp -v DIR:/scratch
WORKDIR /scratch
ENTRYPOINT ["tini", "--", "kdrun"]
CMD ["--help"]
