"""This file knows about Kubernetes: a run's settings as a kustomize base with two overlays.

`base/`            what every run needs, and a RayJob whose cluster comes and goes with it
`overlays/local/`  a plain Job on one node in its place; no operator is needed
`overlays/gpu/`    GPU workers in the place of the others

The settings travel as they are, in a ConfigMap; what pods ask for is computed from the same
settings, so that the two cannot disagree. See docs/kubernetes.md.
"""

import importlib.metadata
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from runner import __version__
from runner.batch.cluster import OBJECT_STORE_BYTES
from runner.batch.machine import GIB
from runner.config import Settings
from runner.errors import StoreError, UsageError
from runner.store.objects import SCHEME

NAME = "kdrun"
SECRET = "kdrun-store"
"""Holds the bucket's credentials as AWS_* variables, where no workload identity gives them."""
USER = 10001
"""The image's."""
CONFIG_FILE = "/etc/kdrun/kdrun.yaml"
MEMORY_BYTES = 16 * GIB
"""For the problems of one pod, unless the settings say."""
RAYS_BYTES = 2 * GIB
"""For Ray itself, beside them; an eighth where that is more."""
SCRATCH = "32Gi"
START_S = 900
"""For a cluster to come up, images and all."""
DEADLINE_S = 24 * 3600
"""For the whole of it; the same run, submitted again, does what is left."""
SUBMISSIONS = 3
METRICS = "metrics"
METRICS_PORT = 8080
"""Where every node of a Ray shows its figures; a plain job's own Ray shows none."""
DASHBOARD_PORT = 8265
HEAD = "ray-head"
HEAD_PORTS = {"gcs-server": 6379, "dashboard": DASHBOARD_PORT, "client": 10001}
"""Under the names by which KubeRay looks for them."""
HEALTH = (
    "from urllib.request import urlopen; import sys; "
    "sys.exit(b'success' not in urlopen("
    "'http://localhost:52365/api/local_raylet_healthz', timeout=4).read())"
)
"""Older operators would ask by wget, which the image has not."""
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
"""The condition of a pod that was preempted or drained."""
SUBMITTER = "ray-job-submitter"
PLACES = {"output", "address", "run_id", "memory", "on_cluster", "send_credentials"}
"""Settings that are about the machine that runs it; the manifests give their own."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pods:
    """What the pods of a run are."""

    image: str = f"{NAME}:{__version__}"
    gpu_image: str = f"{NAME}:{__version__}-cuda"
    nodes: int = 2
    """Worker pods."""
    cores: int = 4
    """Of each."""


def write(settings: Settings, pods: Pods, destination: Path) -> list[Path]:
    """Write the base and the overlays; what stands there under the same names is replaced.

    Raises:
        UsageError: the settings cannot be a run on Kubernetes.
        StoreError: the destination cannot be written to.
    """
    written = []
    for name, documents in render(settings, pods).items():
        path = destination / name
        text = "---\n".join(_yaml(each) for each in documents)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# Written by `kdrun k8s render`.\n{text}", encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}", hint="choose another --to") from error
        written.append(path)
    return written


def render(settings: Settings, pods: Pods) -> dict[str, list[Document]]:
    """Every file's documents, by its path."""
    if settings.store is None or not settings.store.startswith(SCHEME):
        hint = "--store s3://bucket/prefix"
        raise UsageError("pods keep nothing: results must go to a bucket", hint=hint)
    name = _name(settings)
    gpus = max(1, math.ceil(settings.num_gpus))
    on_gpus = settings.model_copy(update={"num_gpus": settings.num_gpus or 1, "device": "cuda"})
    group = "/spec/rayClusterSpec/workerGroupSpecs"
    job = {"group": "ray.io", "version": "v1", "kind": "RayJob", "name": name}
    removal = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}}
    return {
        "base/kustomization.yaml": [_kustomization(["common.yaml", "network.yaml", "rayjob.yaml"])],
        "base/common.yaml": [_namespace(), _account(), _config(settings)],
        "base/network.yaml": [_network(settings)],
        "base/rayjob.yaml": [_ray_job(settings, pods, name)],
        "overlays/local/kustomization.yaml": [
            _kustomization(
                ["../../base", "job.yaml"],
                patches=[{"patch": _yaml({"$patch": "delete", **removal})}],
            )
        ],
        "overlays/local/job.yaml": [_job(settings, pods, name)],
        "overlays/gpu/kustomization.yaml": [
            _kustomization(
                ["../../base"],
                patches=[
                    {"path": "config.yaml"},
                    {"path": "workers.yaml", "target": job},
                ],
            )
        ],
        "overlays/gpu/config.yaml": [_config(on_gpus)],
        # Every task of such a run asks for a GPU: the other workers would idle.
        "overlays/gpu/workers.yaml": [
            [
                {"op": "replace", "path": f"{group}/0/replicas", "value": 0},
                {"op": "replace", "path": f"{group}/0/minReplicas", "value": 0},
                {"op": "add", "path": f"{group}/-", "value": _workers(settings, pods, gpus)},
            ]  # type: ignore[list-item]
        ],
    }


class _Dumper(yaml.SafeDumper):
    """Writes a text of several lines as such."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


def _yaml(document: Document) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=99)


def _name(settings: Settings) -> str:
    """The run's id, where it has one, as Kubernetes lets it be spelled."""
    if settings.run_id is None:
        return NAME
    name = f"{NAME}-{re.sub('[^a-z0-9]+', '-', settings.run_id.lower()).strip('-')}"
    if len(name) > 40:
        raise UsageError(f"--run-id {settings.run_id}: too long for Kubernetes", hint="35 at most")
    return name


def _kustomization(resources: list[str], patches: list[Document] | None = None) -> Document:
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return {**head, "namespace": NAME, "resources": resources} | (
        {"patches": patches} if patches else {}
    )


def _object(kind: str, name: str, version: str = "v1", **content: Any) -> Document:
    labels = {"app.kubernetes.io/name": NAME}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def _namespace() -> Document:
    made = _object("Namespace", NAME)
    made["metadata"]["labels"] |= {"pod-security.kubernetes.io/enforce": "restricted"}
    return made


def _account() -> Document:
    """Has no rights; the cloud's workload identity is bound to it by an annotation."""
    return _object("ServiceAccount", NAME, automountServiceAccountToken=False)


def _config(settings: Settings) -> Document:
    said = settings.model_dump(mode="json", exclude_defaults=True, exclude=PLACES)
    said["output"] = "/scratch/output"
    said["run_id"] = settings.run_id or NAME
    said["memory"] = f"{(settings.memory or MEMORY_BYTES) / GIB:g}GiB"
    text = yaml.safe_dump(said, sort_keys=True)
    return _object("ConfigMap", f"{NAME}-config", data={Path(CONFIG_FILE).name: text})


def _network(settings: Settings) -> Document:
    """Pods reach each other, names, and the store's port; the operator and Prometheus reach them.

    A policy knows no host names: which hosts answer at that port is narrowed by the cluster's own.
    """
    endpoint = urlsplit(settings.s3_endpoint_url or "https://aws")
    port = endpoint.port or (80 if endpoint.scheme == "http" else 443)
    ours = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": NAME}}}
    anywhere: Document = {"namespaceSelector": {}}
    operator = {
        **anywhere,
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "kuberay-operator"}},
    }
    names = [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    return _object(
        "NetworkPolicy",
        NAME,
        "networking.k8s.io/v1",
        spec={
            **ours,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"from": [ours]},
                {"from": [operator], "ports": [{"port": DASHBOARD_PORT}]},
                {"from": [anywhere], "ports": [{"port": METRICS_PORT}]},
            ],
            "egress": [
                {"to": [ours]},
                {"to": [anywhere], "ports": names},
                {"ports": [{"port": port}]},
            ],
        },
    )


def _ray_job(settings: Settings, pods: Pods, name: str) -> Document:
    head = _container(pods.image, HEAD, {"cpu": "1", "memory": "4Gi"})
    submitter = _container(pods.image, SUBMITTER, {"cpu": "200m", "memory": "512Mi"})
    return _object(
        "RayJob",
        name,
        "ray.io/v1",
        spec={
            "entrypoint": f"kdrun submit --config {CONFIG_FILE} --address auto",
            "submissionMode": "K8sJobMode",
            "submitterConfig": {"backoffLimit": SUBMISSIONS},
            "backoffLimit": 0,  # each retry would build a new cluster; the same run goes on instead
            "activeDeadlineSeconds": DEADLINE_S,
            "preRunningDeadlineSeconds": START_S,
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": 600,
            "submitterPodTemplate": _template(submitter, "Never"),
            "rayClusterSpec": {
                "rayVersion": importlib.metadata.version("ray"),
                "headGroupSpec": {
                    "serviceType": "ClusterIP",
                    "rayStartParams": {
                        "num-cpus": "0",  # it drives, and works on nothing
                        "dashboard-host": "0.0.0.0",
                        "object-store-memory": str(OBJECT_STORE_BYTES),
                    },
                    "template": _template(head),
                },
                "workerGroupSpecs": [_workers(settings, pods)],
            },
        },
    )


def _workers(settings: Settings, pods: Pods, gpus: int = 0) -> Document:
    """What Ray offers on a pod is what tasks may ask for; the pod has some more for Ray itself."""
    share = settings.memory or MEMORY_BYTES
    resources = _sizes(pods.cores, share) | ({"nvidia.com/gpu": gpus} if gpus else {})
    parameters = {
        "num-cpus": str(pods.cores),
        "memory": str(int(share)),
        "object-store-memory": str(OBJECT_STORE_BYTES),
    } | ({"num-gpus": str(gpus)} if gpus else {})
    worker = _container(pods.gpu_image if gpus else pods.image, "ray-worker", resources)
    return {
        "groupName": "gpu" if gpus else "cpu",
        "replicas": pods.nodes,
        "minReplicas": pods.nodes,
        "maxReplicas": pods.nodes,
        "rayStartParams": parameters,
        "template": _template(worker),
    }


def _job(settings: Settings, pods: Pods, name: str) -> Document:
    sizes = _sizes(pods.cores, settings.memory or MEMORY_BYTES)
    container = _container(pods.image, NAME, sizes, ray=False)
    container["args"] = ["submit", "--config", CONFIG_FILE, "--workers", str(pods.cores)]
    template = _template(container, "Never")
    template["spec"]["volumes"].append(
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}
    )
    container["volumeMounts"].append({"name": "shm", "mountPath": "/dev/shm"})
    return _object(
        "Job",
        name,
        "batch/v1",
        spec={
            "backoffLimit": SUBMISSIONS,
            "ttlSecondsAfterFinished": 86400,
            "podFailurePolicy": {
                "rules": [
                    # A preempted pod costs no try; a run that has ended as it will is not repeated.
                    {"action": "Ignore", "onPodConditions": [DISRUPTED]},
                    {
                        "action": "FailJob",
                        "onExitCodes": {
                            "containerName": NAME,
                            "operator": "In",
                            "values": [1, 2],
                        },
                    },
                ]
            },
            "template": template,
        },
    )


def _sizes(cores: int, share_bytes: int) -> Document:
    memory = math.ceil((share_bytes + max(RAYS_BYTES, share_bytes / 8)) / GIB)
    return {"cpu": str(cores), "memory": f"{memory}Gi"}


def _container(
    image: str, name: str, resources: Mapping[str, Any], *, ray: bool = True
) -> Document:
    container: Document = {
        "name": name,
        "image": image,
        "env": [
            {"name": "HOME", "value": "/tmp"},
            {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"},
            # Children hold their own limits. Ray's monitor would kill a task for what others do.
            {"name": "RAY_memory_monitor_refresh_ms", "value": "0"},
        ],
        "resources": {"requests": dict(resources), "limits": dict(resources)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "config", "mountPath": str(Path(CONFIG_FILE).parent), "readOnly": True},
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    if name == SUBMITTER:  # it only asks the head
        return container
    container["envFrom"] = [{"secretRef": {"name": SECRET, "optional": True}}]
    if ray:
        # The head's service has the ports that its container names, and no others.
        ports = HEAD_PORTS if name == HEAD else {}
        container["ports"] = [
            {"name": each, "containerPort": port}
            for each, port in (ports | {METRICS: METRICS_PORT}).items()
        ]
        # Who is preempted leaves the cluster by itself: its problems start again elsewhere at once.
        stop = {"exec": {"command": ["/bin/bash", "-lc", "ray stop"]}}
        container["lifecycle"] = {"preStop": stop}
        probe = {
            "exec": {"command": ["python", "-c", HEALTH]},
            "initialDelaySeconds": 15,
            "periodSeconds": 15,
            "timeoutSeconds": 10,
        }
        container["livenessProbe"] = probe | {"failureThreshold": 20}
        container["readinessProbe"] = probe | {"failureThreshold": 4}
    return container


def _template(container: Document, restart: str | None = None) -> Document:
    metadata: Document = {"labels": {"app.kubernetes.io/name": NAME}}
    if any(port["name"] == METRICS for port in container.get("ports", [])):
        metadata["annotations"] = {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(METRICS_PORT),
        }
    return {
        "metadata": metadata,
        "spec": {
            "serviceAccountName": NAME,
            "automountServiceAccountToken": False,
            # They would come as KDRUN_... variables, which are settings.
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 60,
            "containers": [container],
            "volumes": [
                {"name": "config", "configMap": {"name": f"{NAME}-config"}},
                {"name": "scratch", "emptyDir": {"sizeLimit": SCRATCH}},
                {"name": "tmp", "emptyDir": {"sizeLimit": "8Gi"}},
            ],
        }
        | ({"restartPolicy": restart} if restart else {}),
    }
