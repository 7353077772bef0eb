# kdrun in a container, for one machine or as the image of a Ray cluster's nodes.
#
#   docker build -t kdrun .                                   a machine without GPUs
#   docker build -t kdrun:cuda --build-arg FLAVOUR=cuda .     with PyTorch's CUDA libraries
#
# BASE is a Debian with Python 3.11 or newer; pin it by digest where builds must repeat:
# --build-arg BASE=docker.io/library/python@sha256:...
ARG BASE=docker.io/library/python:3.11-slim-bookworm


# What changes seldom: everything that kdrun needs, in an environment of its own.
FROM ${BASE} AS dependencies
ARG FLAVOUR=cpu
ARG TORCH=torch==2.13.0
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/kdrun
# The CPU build is named exactly: no index can answer with the CUDA packages instead. What pip is
# configured with may have it, as in the Makefile. The CUDA build has no name but the version's, so
# what came is looked at. PyPI's is for CUDA 13: --build-arg TORCH=... names one for older drivers.
RUN case "$FLAVOUR" in \
      cpu) /opt/kdrun/bin/pip install -q "${TORCH}+cpu" 2>/dev/null \
             || /opt/kdrun/bin/pip install -q "${TORCH}+cpu" --extra-index-url "${TORCH_INDEX}" ;; \
      cuda) /opt/kdrun/bin/pip install -q "${TORCH}" && /opt/kdrun/bin/python -c \
             "import torch; v = torch.version; assert v.cuda, f'torch {v.__version__}: not for CUDA'" ;; \
      *) echo "FLAVOUR=$FLAVOUR: cpu or cuda" >&2; exit 1 ;; \
    esac
WORKDIR /build
COPY pyproject.toml ./
# With what single problems of KernelBench import, and what Ray's job API needs.
RUN /opt/kdrun/bin/python -c "import tomllib; \
    p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
    print(*p['dependencies'], *p['optional-dependencies']['kernelbench'], 'ray[default]', sep='\n')" \
      > requirements.txt \
    && /opt/kdrun/bin/pip install -q -r requirements.txt


# What changes often: kdrun itself, alone in its folder and so in a layer of its own.
FROM dependencies AS kdrun
COPY README.md LICENSE ./
COPY data/samples data/samples
COPY data/manifest.txt data/manifest.txt
COPY runner runner
RUN /opt/kdrun/bin/pip install -q --no-deps --target /opt/app .


FROM ${BASE}
# A login shell, as KubeRay starts Ray with, sets PATH anew: profile.d says it again.
RUN useradd --uid 10001 --create-home kdrun \
    && mkdir /scratch && chown kdrun:kdrun /scratch \
    && echo 'export PATH=/opt/app/bin:/opt/kdrun/bin:$PATH' > /etc/profile.d/kdrun.sh
COPY --from=dependencies /opt/kdrun /opt/kdrun
COPY --from=kdrun /opt/app /opt/app
ENV PATH=/opt/app/bin:/opt/kdrun/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/app \
    PYTHONDONTWRITEBYTECODE=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
# By number: Kubernetes can only see of a number that it is not root's.
USER 10001:10001
# Only these two are written to; the rest may be read-only: --read-only --tmpfs /tmp -v DIR:/scratch
WORKDIR /scratch
HEALTHCHECK --interval=60s --timeout=30s --start-period=30s CMD ["kdrun", "doctor"]
ENTRYPOINT ["kdrun"]
