"""The manifests in k8s/: kustomize builds them, they are valid, and they agree with the run."""

import re
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
from pydantic import ByteSize, TypeAdapter

from runner import __version__
from runner.batch.cluster import OBJECT_STORE_BYTES
from runner.batch.machine import GIB
from runner.config import PREFIX, load_settings
from runner.errors import ConfigError

ROOT = Path(__file__).parents[2]
K8S = ROOT / "k8s"
KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or "kubectl"
RAY_JOBS = ["base", "overlays/cpu", "overlays/gpu"]
OVERLAYS = ["overlays/cpu", "overlays/gpu", "overlays/local"]
SUBMITTER = "ray-job-submitter"
STOP_WAIT_S = 60
"""Seconds that a driver may need to end its problems and write its manifest."""
RAYS_BYTES = 2 * GIB
"""Memory that Ray's own processes take in a pod."""
Objects = dict[str, dict[str, Any]]
"""Objects by kind."""


def build(folder: Path) -> Objects:
    done = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}


@pytest.fixture(scope="module")
def built() -> dict[str, Objects]:
    """The objects of the setup, the base and each overlay."""
    return {name: build(K8S / name) for name in ["setup", "base", *OVERLAYS]}


def job_of(objects: Objects) -> dict[str, Any]:
    return objects.get("RayJob") or objects["Job"]


def pod_templates(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod's template, however deep."""
    if isinstance(value, dict):
        if "containers" in value.get("spec", {}):
            yield value
        for each in value.values():
            yield from pod_templates(each)
    elif isinstance(value, list):
        for each in value:
            yield from pod_templates(each)


def containers(objects: Objects) -> dict[str, dict[str, Any]]:
    """Containers by name; each pod has one."""
    found = {}
    for template in pod_templates(objects):
        (container,) = template["spec"]["containers"]
        found[container["name"]] = container
    return found


def gib(quantity: str) -> int:
    assert quantity.endswith("Gi")
    return int(quantity.removesuffix("Gi")) * GIB


def uncommented(text: str) -> str:
    """A manifest with all that it offers: `#- like this`; prose has a space after the `#`."""
    return re.sub(r"^( *)#(?=[-a-z]|  )(?! *kubectl)", r"\1", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def with_patches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    """The objects of the setup and each overlay when all that is commented out is uncommented."""
    copy = tmp_path_factory.mktemp("k8s") / "k8s"
    shutil.copytree(K8S, copy)
    for file in copy.rglob("*.yaml"):
        file.write_text(uncommented(file.read_text()))
    return {name: build(copy / name) for name in ["setup", *OVERLAYS]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_deleting_a_run_takes_its_job_and_its_settings_and_no_namespace_or_secret(
    built: dict[str, Objects], overlay: str
) -> None:
    job = "Job" if overlay == "overlays/local" else "RayJob"
    assert set(built[overlay]) == {job, "ConfigMap"}
    assert set(built["setup"]) == {"Namespace", "ServiceAccount", "NetworkPolicy"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_everything_of_a_run_carries_its_name_and_refers_to_what_is_there(
    built: dict[str, Objects], overlay: str
) -> None:
    for each in built[overlay].values():
        assert (each["metadata"]["name"], each["metadata"]["namespace"]) == (
            "kdrun-nightly",
            "kdrun",
        )
    for template in pod_templates(built[overlay]):
        (container,) = template["spec"]["containers"]
        assert template["spec"]["serviceAccountName"] == "kdrun"
        if container["name"] != SUBMITTER:
            configuration, secret = container["envFrom"]
            assert configuration == {"configMapRef": {"name": "kdrun-nightly"}}
            assert secret == {"secretRef": {"name": "kdrun-store"}}  # not optional: it must exist
    assert built["setup"]["ServiceAccount"]["metadata"]["name"] == "kdrun"
    assert built["setup"]["Namespace"]["metadata"]["name"] == "kdrun"


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_settings_are_ones_that_kdrun_reads(
    built: dict[str, Objects],
    with_patches: dict[str, Objects],
    overlay: str,
    patched: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    objects = (with_patches if patched else built)[overlay]
    for name, value in objects["ConfigMap"]["data"].items():
        monkeypatch.setenv(name, value)
    settings = load_settings({})
    assert settings.run_id == job_of(objects)["metadata"]["name"]
    assert settings.store == "s3://results/kdrun"
    assert settings.output == Path("/scratch/output")
    assert settings.level == ([1, 2] if patched else [])
    on_gpus = overlay == "overlays/gpu"
    assert (settings.num_gpus, settings.device) == ((1, "cuda") if on_gpus else (0, "cpu"))


def test_a_run_that_names_no_store_is_refused(
    built: dict[str, Objects], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in built["base"]["ConfigMap"]["data"].items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="KDRUN_STORE"):
        load_settings({})


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_pod_has_the_memory_of_its_problems_and_some_for_ray(
    built: dict[str, Objects], with_patches: dict[str, Objects], overlay: str
) -> None:
    for objects in (built[overlay], with_patches[overlay]):
        if "RayJob" in objects:
            (group,) = objects["RayJob"]["spec"]["rayClusterSpec"]["workerGroupSpecs"]
            parameters = group["rayStartParams"]
            assert parameters["object-store-memory"] == str(OBJECT_STORE_BYTES)
            problems_bytes = int(parameters["memory"])
            limits = containers(objects)["ray-worker"]["resources"]["limits"]
        else:
            settings = objects["ConfigMap"]["data"]
            problems_bytes = TypeAdapter(ByteSize).validate_python(settings["KDRUN_MEMORY"])
            limits = containers(objects)["kdrun"]["resources"]["limits"]
            assert limits["cpu"] == settings["KDRUN_WORKERS"]
        # Kubernetes ends a pod that takes more than its limit, with all problems in it.
        least = problems_bytes + max(RAYS_BYTES, problems_bytes // 8)
        assert least <= gib(limits["memory"]) < least + GIB


def test_gpus_are_the_gpu_overlay_s_alone(built: dict[str, Objects]) -> None:
    gpu = built["overlays/gpu"]
    assert containers(gpu)["ray-worker"]["resources"]["limits"]["nvidia.com/gpu"] == 1
    for name in ("base", "overlays/cpu", "overlays/local"):
        assert "gpu" not in yaml.safe_dump_all(built[name].values()).lower()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_image_is_the_one_that_images_names(built: dict[str, Objects], overlay: str) -> None:
    flavour = "-cuda" if overlay == "overlays/gpu" else ""
    image = f"registry.example.com/kdrun:{__version__}{flavour}"
    assert {each["image"] for each in containers(built[overlay]).values()} == {image}


def test_the_ray_that_kuberay_is_told_of_is_the_image_s(built: dict[str, Objects]) -> None:
    version = built["base"]["RayJob"]["spec"]["rayClusterSpec"]["rayVersion"]
    lock = (ROOT / "configs/image.lock").read_text()
    assert re.findall(r"^ray==(\S+)", lock, re.MULTILINE) == [version]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_patch_that_is_offered_does_what_it_says(
    with_patches: dict[str, Objects], overlay: str
) -> None:
    objects = with_patches[overlay]
    worked = [
        template["spec"]
        for template in pod_templates(objects)
        if template["spec"]["containers"][0]["name"] in ("ray-worker", "kdrun")
    ]
    (pod,) = worked
    assert pod["nodeSelector"]
    taints = [each["key"] for each in pod["tolerations"]]
    of_gpus = ["nvidia.com/gpu"] if overlay == "overlays/gpu" else []
    assert taints == [*of_gpus, "example.com/batch"]
    if "RayJob" in objects:
        (group,) = objects["RayJob"]["spec"]["rayClusterSpec"]["workerGroupSpecs"]
        assert group["replicas"] == 8
        limits = containers(objects)["ray-worker"]["resources"]["limits"]
        assert (limits["cpu"], limits["memory"]) == ("8", "32Gi")


def test_the_setup_offers_pull_secrets_an_iam_role_and_more_ways_out(
    with_patches: dict[str, Objects],
) -> None:
    setup = with_patches["setup"]
    account = setup["ServiceAccount"]
    assert account["imagePullSecrets"] == [{"name": "registry"}]
    assert "eks.amazonaws.com/role-arn" in account["metadata"]["annotations"]
    egress = setup["NetworkPolicy"]["spec"]["egress"]
    assert [rule.get("ports", [{}])[0].get("port") for rule in egress] == [None, 53, 443, 9000, 80]


@pytest.mark.parametrize("name", ["setup", *OVERLAYS])
def test_core_objects_are_valid(
    built: dict[str, Objects], with_patches: dict[str, Objects], name: str
) -> None:
    for objects in (built[name], with_patches[name]):
        for kind, each in objects.items():
            if kind != "RayJob":
                kubernetes_validate.validate(each, "1.30", strict=True)


@pytest.mark.parametrize("overlay", RAY_JOBS)
def test_ray_jobs_have_the_fields_that_kuberay_knows_and_valid_pods(
    built: dict[str, Objects], overlay: str
) -> None:
    job = built[overlay]["RayJob"]
    jsonschema.validate(job, known())
    specs = [template["spec"] for template in pod_templates(job)]
    assert len(specs) == 3
    for spec in specs:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
        kubernetes_validate.validate(pod, "1.30", strict=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entryPoint": "x"}, "'entryPoint' was unexpected"),
        ({"ttlSecondsAfterFinished": "600"}, "'600' is not of type 'integer'"),
        ({"submitterConfig": {}}, "'backoffLimit' is a required property"),
    ],
)
def test_a_misspelled_missing_or_mistyped_field_of_a_ray_job_is_found(
    built: dict[str, Objects], changes: dict[str, Any], message: str
) -> None:
    job = built["base"]["RayJob"]
    wrong = job | {"spec": job["spec"] | changes}
    with pytest.raises(jsonschema.ValidationError, match=message):
        jsonschema.validate(wrong, known())


def test_the_known_fields_are_kuberay_s() -> None:
    schema = of_kuberay("rayjobs")
    assert {name: kind_of(schema, name) for name in KNOWN} == KNOWN


@pytest.mark.parametrize("overlay", RAY_JOBS)
def test_ray_jobs_and_their_clusters_are_valid_by_kuberay_s_own_schema(
    built: dict[str, Objects], overlay: str
) -> None:
    job = built[overlay]["RayJob"]
    schema = tightened(of_kuberay("rayjobs"))
    jsonschema.validate(job, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(job | {"spec": job["spec"] | {"entryPoint": "x"}}, schema)
    cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": job["metadata"]}
    cluster["spec"] = job["spec"]["rayClusterSpec"]
    jsonschema.validate(cluster, tightened(of_kuberay("rayclusters")))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_is_restricted_and_its_scratch_limited(
    built: dict[str, Objects], overlay: str
) -> None:
    for template in pod_templates(built[overlay]):
        assert template["metadata"]["labels"]["app.kubernetes.io/name"] == "kdrun"
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert all("sizeLimit" in each["emptyDir"] for each in spec["volumes"])
        mounted = {each["mountPath"] for each in container["volumeMounts"]}
        assert "/tmp" in mounted
        if container["name"] != SUBMITTER:
            assert "/scratch" in mounted
            assert spec["enableServiceLinks"] is False
    setup = built["setup"]
    assert setup["ServiceAccount"]["automountServiceAccountToken"] is False
    assert (
        setup["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        == "restricted"
    )


def test_the_network_lets_pods_reach_each_other_names_and_the_store_s_port(
    built: dict[str, Objects],
) -> None:
    policy = built["setup"]["NetworkPolicy"]["spec"]
    pods = [{"podSelector": policy["podSelector"]}]
    assert policy["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "kdrun"}
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    ports = [[port["port"] for port in rule.get("ports", [])] for rule in policy["egress"]]
    assert ports == [[], [53, 53], [443]]
    assert policy["egress"][0]["to"] == pods
    ingress = [[port["port"] for port in rule.get("ports", [])] for rule in policy["ingress"]]
    assert ingress == [[], [8265], [8080]]
    assert policy["ingress"][0]["from"] == pods


def test_ray_asks_for_a_token_and_the_submitter_has_no_credentials(
    built: dict[str, Objects],
) -> None:
    assert built["base"]["RayJob"]["spec"]["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    assert "envFrom" not in containers(built["base"])[SUBMITTER]


def test_the_head_runs_no_problem_and_has_the_ports_that_kuberay_looks_for(
    built: dict[str, Objects],
) -> None:
    head = built["base"]["RayJob"]["spec"]["rayClusterSpec"]["headGroupSpec"]
    objects_bytes = str(OBJECT_STORE_BYTES)
    assert head["rayStartParams"] == {"num-cpus": "0", "object-store-memory": objects_bytes}
    ports = {each["name"]: each["containerPort"] for each in containers(head)["ray-head"]["ports"]}
    assert ports == {"gcs-server": 6379, "dashboard": 8265, "client": 10001, "metrics": 8080}


def test_prometheus_is_sent_to_the_pods_that_have_figures_and_to_their_port(
    built: dict[str, Objects],
) -> None:
    for template in (one for name in OVERLAYS for one in pod_templates(built[name])):
        (container,) = template["spec"]["containers"]
        ports = [each["containerPort"] for each in container.get("ports", [])]
        told = {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}
        assert template["metadata"].get("annotations") == (told if 8080 in ports else None)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_pod_that_has_to_go_leaves_ray_first_and_has_the_time_for_it(
    built: dict[str, Objects], overlay: str
) -> None:
    for template in pod_templates(built[overlay]):
        (container,) = template["spec"]["containers"]
        if container["name"] == SUBMITTER:
            continue
        assert template["spec"]["terminationGracePeriodSeconds"] >= STOP_WAIT_S
        leaves = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        of_ray = container["name"] in ("ray-head", "ray-worker")
        assert leaves == (["/bin/bash", "-lc", "ray stop"] if of_ray else None)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_run_has_an_end(built: dict[str, Objects], overlay: str) -> None:
    spec = job_of(built[overlay])["spec"]
    assert spec["activeDeadlineSeconds"] == 24 * 3600
    assert spec["ttlSecondsAfterFinished"] > 0


def test_a_ray_job_is_sent_again_and_its_cluster_never_made_again(
    built: dict[str, Objects],
) -> None:
    spec = built["base"]["RayJob"]["spec"]
    assert (spec["backoffLimit"], spec["submitterConfig"]["backoffLimit"]) == (0, 3)
    assert 0 < spec["preRunningDeadlineSeconds"] < spec["activeDeadlineSeconds"]
    assert spec["shutdownAfterJobFinishes"] is True


def test_a_job_that_is_preempted_begins_again_and_one_that_failed_does_not(
    built: dict[str, Objects],
) -> None:
    spec = built["overlays/local"]["Job"]["spec"]
    preempted, failed = spec["podFailurePolicy"]["rules"]
    assert preempted["action"] == "Ignore"
    assert preempted["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert failed["action"] == "FailJob"
    assert failed["onExitCodes"]["values"] == [1, 2]  # 130 is a pod that was told to go
    assert failed["onExitCodes"]["containerName"] == "kdrun"


def test_what_the_guide_applies_and_edits_is_there() -> None:
    guide = (ROOT / "docs/kubernetes.md").read_text()
    applied = re.findall(r"kubectl (?:apply|delete|kustomize) -k ([a-z0-9/]+)", guide)
    assert {"k8s/setup", "k8s/overlays/cpu"} <= set(applied)
    assert all((ROOT / name / "kustomization.yaml").is_file() for name in applied)
    for name in re.findall(r"`((?:setup|base|overlays)/[a-z./-]+)`", guide):
        assert (K8S / name).exists(), name
    for name in re.findall(rf"{PREFIX}([A-Z0-9_]+)", guide):
        assert name.lower() in yaml.safe_load((ROOT / "configs/default.yaml").read_text()), name
