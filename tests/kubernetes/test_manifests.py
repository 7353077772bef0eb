"""The manifests: what `kdrun k8s render` writes is built by kustomize and valid, offline."""

import copy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from kuberay_schema import KNOWN, kind_of, known, of_kuberay, tightened
from pydantic import ByteSize

from runner.batch.kubernetes import Pods, write
from runner.batch.machine import GIB
from runner.batch.remote.sending import STOP_S
from runner.config import Settings, load
from runner.errors import StoreError, UsageError

ROOT = Path(__file__).parents[2]
KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or "kubectl"
OVERLAYS = {
    "base": {"RayJob"},
    "overlays/local": {"Job"},
    "overlays/gpu": {"RayJob"},
}
RAY_JOBS = ["base", "overlays/gpu"]
COMMON = {"Namespace", "ServiceAccount", "ConfigMap", "NetworkPolicy"}
Objects = dict[str, dict[str, Any]]


def built(folder: Path) -> Objects:
    """The objects of a base or an overlay, by kind."""
    done = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        store="s3://results/kdrun",
        s3_endpoint_url="http://minio.storage:9000",
        run_id="Nightly_3",
        level=[3],
        memory=ByteSize(24 * GIB),
        num_gpus=0.5,
        on_cluster="http://head:8265",  # about who sends a run, and no word of how it is done
    )


@pytest.fixture(scope="module")
def rendered(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    """The objects of each overlay."""
    place = tmp_path_factory.mktemp("k8s")
    write(settings, Pods(nodes=3, cores=8), place)
    return {name: built(place / name) for name in OVERLAYS}


def pod_specs(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod's spec, however deep."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for each in value.values():
            yield from pod_specs(each)
    elif isinstance(value, list):
        for each in value:
            yield from pod_specs(each)


def templates(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod with its metadata, however deep."""
    if isinstance(value, dict):
        if "containers" in value.get("spec", {}):
            yield value
        for each in value.values():
            yield from templates(each)
    elif isinstance(value, list):
        for each in value:
            yield from templates(each)


def resources_of(group: dict[str, Any]) -> dict[str, Any]:
    requests: dict[str, Any] = group["template"]["spec"]["containers"][0]["resources"]["requests"]
    return requests


def test_what_is_in_the_repository_is_what_the_command_writes(tmp_path: Path) -> None:
    written = write(Settings(store="s3://results/kdrun"), Pods(), tmp_path)
    for path in written:
        name = path.relative_to(tmp_path)
        assert (ROOT / "k8s" / name).read_text() == path.read_text(), f"{name}: make k8s"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_core_objects_are_valid_and_have_no_field_that_is_none(
    rendered: dict[str, Objects], overlay: str
) -> None:
    assert set(rendered[overlay]) == COMMON | OVERLAYS[overlay]
    for kind, each in rendered[overlay].items():
        if kind != "RayJob":
            kubernetes_validate.validate(each, "1.30", strict=True)


@pytest.mark.parametrize("overlay", RAY_JOBS)
def test_pods_of_a_ray_job_are_valid_pods(rendered: dict[str, Objects], overlay: str) -> None:
    specs = list(pod_specs(rendered[overlay]["RayJob"]))
    assert (
        len(specs)
        == len(rendered[overlay]["RayJob"]["spec"]["rayClusterSpec"]["workerGroupSpecs"]) + 2
    )
    for spec in specs:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
        kubernetes_validate.validate(pod, "1.30", strict=True)


@pytest.mark.parametrize("overlay", RAY_JOBS)
def test_ray_jobs_have_the_fields_that_kuberay_s_schema_was_seen_to_have_and_no_others(
    rendered: dict[str, Objects], overlay: str
) -> None:
    job = rendered[overlay]["RayJob"]
    jsonschema.validate(job, known())
    assert job["spec"]["submissionMode"] == "K8sJobMode"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entryPoint": "x"}, "'entryPoint' was unexpected"),
        ({"ttlSecondsAfterFinished": "600"}, "'600' is not of type 'integer'"),
        ({"submitterConfig": {}}, "'backoffLimit' is a required property"),
    ],
)
def test_a_misspelled_missing_or_mistyped_field_of_a_ray_job_is_found(
    rendered: dict[str, Objects], changes: dict[str, Any], message: str
) -> None:
    job = rendered["base"]["RayJob"]
    wrong = job | {"spec": job["spec"] | changes}
    with pytest.raises(jsonschema.ValidationError, match=message):
        jsonschema.validate(wrong, known())


def test_ray_is_started_with_texts(rendered: dict[str, Objects]) -> None:
    job = copy.deepcopy(rendered["base"]["RayJob"])
    (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    group["rayStartParams"]["num-cpus"] = 4
    with pytest.raises(jsonschema.ValidationError, match="4 is not of type 'string'"):
        jsonschema.validate(job, known())


def test_what_is_known_of_kuberay_s_schema_is_what_it_says() -> None:
    schema = of_kuberay("rayjobs")
    assert {name: kind_of(schema, name) for name in KNOWN} == KNOWN


@pytest.mark.parametrize("overlay", RAY_JOBS)
def test_ray_jobs_and_their_clusters_are_what_kuberay_s_own_schema_says(
    rendered: dict[str, Objects], overlay: str
) -> None:
    job = rendered[overlay]["RayJob"]
    schema = tightened(of_kuberay("rayjobs"))
    jsonschema.validate(job, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(job | {"spec": job["spec"] | {"entryPoint": "x"}}, schema)
    cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": job["metadata"]}
    cluster["spec"] = job["spec"]["rayClusterSpec"]
    jsonschema.validate(cluster, tightened(of_kuberay("rayclusters")))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_is_restricted_has_no_api_rights_and_a_limited_scratch(
    rendered: dict[str, Objects], overlay: str
) -> None:
    assert rendered[overlay]["ServiceAccount"]["automountServiceAccountToken"] is False
    labels = rendered[overlay]["Namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for spec in pod_specs(rendered[overlay]):
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        empty = [each["emptyDir"] for each in spec["volumes"] if "emptyDir" in each]
        assert len(empty) >= 2
        assert all("sizeLimit" in each for each in empty)


def test_the_config_is_what_the_run_reads(
    rendered: dict[str, Objects], settings: Settings, tmp_path: Path
) -> None:
    for overlay, changes in (
        ("base", {}),
        ("overlays/gpu", {"device": "cuda"}),
    ):
        file = tmp_path / "kdrun.yaml"
        file.write_text(rendered[overlay]["ConfigMap"]["data"]["kdrun.yaml"])
        places = {"output": Path("/scratch/output"), "on_cluster": None}
        wanted = settings.model_copy(update=changes | places)
        assert load({}, file).model_dump() == wanted.model_dump()


def test_what_a_task_may_ask_for_is_there_and_fits_its_pod(rendered: dict[str, Objects]) -> None:
    cluster = rendered["base"]["RayJob"]["spec"]["rayClusterSpec"]
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (group,) = cluster["workerGroupSpecs"]
    assert (group["replicas"], group["rayStartParams"]["num-cpus"]) == (3, "8")
    assert int(group["rayStartParams"]["memory"]) == 24 * GIB
    assert resources_of(group) == {"cpu": "8", "memory": "27Gi"}


def test_the_head_s_service_has_what_its_workers_and_the_submission_ask_it_for(
    rendered: dict[str, Objects],
) -> None:
    cluster = rendered["base"]["RayJob"]["spec"]["rayClusterSpec"]
    (head,) = cluster["headGroupSpec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in head["ports"]}
    assert ports == {"gcs-server": 6379, "dashboard": 8265, "client": 10001, "metrics": 8080}
    (worker,) = cluster["workerGroupSpecs"][0]["template"]["spec"]["containers"]
    assert [port["name"] for port in worker["ports"]] == ["metrics"]


def test_only_gpu_workers_run_where_tasks_ask_for_gpus(rendered: dict[str, Objects]) -> None:
    groups = rendered["overlays/gpu"]["RayJob"]["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert [(each["groupName"], each["replicas"]) for each in groups] == [("cpu", 0), ("gpu", 3)]
    assert resources_of(groups[1])["nvidia.com/gpu"] == 1
    assert groups[1]["rayStartParams"]["num-gpus"] == "1"


def test_credentials_are_named_and_never_written(rendered: dict[str, Objects]) -> None:
    job = rendered["base"]["RayJob"]["spec"]
    (head,) = job["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert head["envFrom"] == [{"secretRef": {"name": "kdrun-store", "optional": True}}]
    (submitter,) = job["submitterPodTemplate"]["spec"]["containers"]
    assert "envFrom" not in submitter


def test_the_network_lets_pods_reach_each_other_names_and_the_store_s_port(
    rendered: dict[str, Objects],
) -> None:
    policy = rendered["base"]["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    ports = [[port["port"] for port in rule.get("ports", [])] for rule in policy["egress"]]
    assert ports == [[], [53, 53], [9000]]
    assert policy["egress"][0]["to"] == [{"podSelector": policy["podSelector"]}]
    ingress = [[port["port"] for port in rule.get("ports", [])] for rule in policy["ingress"]]
    assert ingress == [[], [8265], [8080]]
    assert policy["ingress"][0]["from"] == [{"podSelector": policy["podSelector"]}]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_prometheus_is_sent_to_the_pods_that_have_figures_and_to_their_port(
    rendered: dict[str, Objects], overlay: str
) -> None:
    pods = list(templates(rendered[overlay]))
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        ports = [each["containerPort"] for each in container.get("ports", [])]
        said = {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}
        assert pod["metadata"].get("annotations") == (said if 8080 in ports else None)
    scraped = sum("annotations" in pod["metadata"] for pod in pods)
    assert scraped == {"base": 2, "overlays/local": 0, "overlays/gpu": 3}[overlay]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_pod_that_has_to_go_leaves_ray_first_and_has_the_time_for_it(
    rendered: dict[str, Objects], overlay: str
) -> None:
    for spec in pod_specs(rendered[overlay]):
        assert spec["terminationGracePeriodSeconds"] >= STOP_S
        (container,) = spec["containers"]
        leaves = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        of_ray = container["name"] in ("ray-head", "ray-worker")
        assert leaves == (["/bin/bash", "-lc", "ray stop"] if of_ray else None)


def test_a_ray_job_is_sent_again_and_never_made_again_and_has_an_end(
    rendered: dict[str, Objects],
) -> None:
    spec = rendered["base"]["RayJob"]["spec"]
    assert (spec["backoffLimit"], spec["submitterConfig"]["backoffLimit"]) == (0, 3)
    assert 0 < spec["preRunningDeadlineSeconds"] < spec["activeDeadlineSeconds"] == 24 * 3600
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["ttlSecondsAfterFinished"] > 0


def test_a_job_that_is_preempted_begins_again_and_one_that_failed_does_not(
    rendered: dict[str, Objects],
) -> None:
    spec = rendered["overlays/local"]["Job"]["spec"]
    preempted, failed = spec["podFailurePolicy"]["rules"]
    assert preempted["action"] == "Ignore"
    assert preempted["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert failed["action"] == "FailJob"
    assert failed["onExitCodes"]["values"] == [1, 2]  # 130 is a pod that was told to go
    assert failed["onExitCodes"]["containerName"] == "kdrun"


def test_a_run_s_name_is_the_objects_name(rendered: dict[str, Objects]) -> None:
    assert rendered["overlays/local"]["Job"]["metadata"]["name"] == "kdrun-nightly-3"
    assert rendered["base"]["RayJob"]["metadata"]["name"] == "kdrun-nightly-3"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"store": None}, "pods keep nothing: results must go to a bucket"),
        ({"store": "folder"}, "pods keep nothing"),
        ({"run_id": "x" * 60}, "too long for Kubernetes"),
    ],
)
def test_what_cannot_run_on_kubernetes_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    settings = Settings.model_validate({"store": "s3://results/kdrun"} | changes)
    with pytest.raises(UsageError, match=message):
        write(settings, Pods(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_destination_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="choose another --to"):
        write(Settings(store="s3://results/kdrun"), Pods(), tmp_path / "file")
