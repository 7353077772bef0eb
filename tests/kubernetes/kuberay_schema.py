"""KubeRay's schema: what of it is known here, and the whole of it where somebody has it.

The schema itself is not in this repository: KUBERAY_CRDS names a folder with ray.io_rayjobs.yaml
and ray.io_rayclusters.yaml from KubeRay's Helm chart, helm-chart/kuberay-operator/crds.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

KNOWN = {
    "apiVersion": "string",
    "kind": "string",
    "metadata": "object",
    "spec.activeDeadlineSeconds": "integer",
    "spec.backoffLimit": "integer",
    "spec.entrypoint": "string",
    "spec.preRunningDeadlineSeconds": "integer",  # since KubeRay 1.6
    "spec.rayClusterSpec.authOptions.mode": "string",  # since KubeRay 1.5.1
    "spec.rayClusterSpec.headGroupSpec.rayStartParams": "texts",
    "spec.rayClusterSpec.headGroupSpec.template": "object",
    "spec.rayClusterSpec.rayVersion": "string",
    "spec.rayClusterSpec.workerGroupSpecs[].groupName": "string",
    "spec.rayClusterSpec.workerGroupSpecs[].rayStartParams": "texts",
    "spec.rayClusterSpec.workerGroupSpecs[].replicas": "integer",
    "spec.rayClusterSpec.workerGroupSpecs[].template": "object",
    "spec.shutdownAfterJobFinishes": "boolean",
    "spec.submissionMode": "string",
    "spec.submitterConfig.backoffLimit": "integer",
    "spec.submitterPodTemplate": "object",
    "spec.ttlSecondsAfterFinished": "integer",
}
"""The fields that a RayJob of ours has and their types, as KubeRay's schema was seen to have them.

Pods are checked as pods, and so are objects here; texts are a map of texts.
"""


def known() -> dict[str, Any]:
    """A JSON schema of `KNOWN`: every field is there, and no other is."""
    schema = _closed()
    for name, kind in KNOWN.items():
        place = schema
        *above, last = name.split(".")
        for part in above:
            place = _below(place, part)
        texts = {"type": "object", "additionalProperties": {"type": "string"}}
        _add(place, last, texts if kind == "texts" else {"type": kind})
    return schema


def _closed() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _below(place: dict[str, Any], part: str) -> dict[str, Any]:
    name = part.removesuffix("[]")
    if name not in place["properties"]:
        inner = _closed()
        _add(place, name, inner if name == part else {"type": "array", "items": inner})
    found: dict[str, Any] = place["properties"][name]
    return found.get("items", found)


def _add(place: dict[str, Any], name: str, schema: dict[str, Any]) -> None:
    place["properties"][name] = schema
    place["required"].append(name)


def of_kuberay(kind: str) -> dict[str, Any]:
    """Its own schema of "rayjobs" or "rayclusters"; the test is skipped where nobody has it."""
    folder = os.environ.get("KUBERAY_CRDS")
    if not folder:
        pytest.skip(f"KUBERAY_CRDS names no folder with KubeRay's ray.io_{kind}.yaml")
    with (Path(folder) / f"ray.io_{kind}.yaml").open() as file:
        crd = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # more than a MB
    (version,) = [each for each in crd["spec"]["versions"] if each["name"] == "v1"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def kind_of(schema: dict[str, Any], name: str) -> str:
    """The type of a field in KubeRay's schema, in the words of `KNOWN`."""
    for part in name.split("."):
        schema = schema["properties"][part.removesuffix("[]")]
        schema = schema["items"] if part.endswith("[]") else schema
    texts = schema.get("additionalProperties") == {"type": "string"}
    return "texts" if texts else schema["type"]


def tightened(schema: Any) -> Any:
    """The schema as a server applies it to what people write.

    A field that it does not know is an error, quantities may be texts or numbers, and a required
    field that has a default may be left out.
    """
    if isinstance(schema, list):
        return [tightened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    made = {key: tightened(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made.setdefault("additionalProperties", False)
    if isinstance(schema.get("required"), list):
        fields = schema["properties"]
        made["required"] = [each for each in schema["required"] if "default" not in fields[each]]
    if made.get("properties", {}).get("metadata") == {"type": "object"}:
        made["properties"]["metadata"] = {"type": "object"}
    return made
