"""Checks that every node of a cluster has the same kdrun, Python and PyTorch."""

import importlib.metadata
import platform

from runner import __version__
from runner.batch.cluster import list_nodes, summarize_error
from runner.errors import ClusterError

ANSWER_TIMEOUT_S = 120.0
"""Seconds that the nodes get to start a worker and answer."""


def installed_versions() -> dict[str, str]:
    """Return the versions that two machines must share, by package, without importing any."""
    return {
        "kdrun": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        # Builds for CUDA and CPU count as the same.
        "PyTorch": importlib.metadata.version("torch").partition("+")[0],
    }


def refuse_other_versions() -> None:
    """Compare the versions on every node that has CPUs with those on this machine.

    Raises:
        ClusterError: a node has another version of something, has no kdrun, or does not answer.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in list_nodes() if node["Alive"] and node["Resources"].get("CPU")]
    remote_function = ray.remote(installed_versions)
    host_by_reference = {
        remote_function.options(
            num_cpus=0,
            max_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote(): node["NodeManagerHostname"]
        for node in nodes
    }
    if not host_by_reference:
        return
    references = list(host_by_reference)
    _, unanswered = ray.wait(references, num_returns=len(references), timeout=ANSWER_TIMEOUT_S)
    if unanswered:
        raise ClusterError(
            f"{host_by_reference[unanswered[0]]}: "
            f"no worker has answered for {ANSWER_TIMEOUT_S:.0f} s",
            hint="do Ray's own tasks run there?",
        )
    local_versions = installed_versions()
    for reference, host in host_by_reference.items():
        try:
            remote_versions = ray.get(reference)
        except ray.exceptions.RayError as error:
            raise ClusterError(
                f"{host}: kdrun does not run there: {summarize_error(error)}",
                hint=f"install kdrun {__version__} on every node",
            ) from error
        for package, version in local_versions.items():
            if remote_versions[package] != version:
                raise ClusterError(
                    f"{host}: {package} {remote_versions[package]} there, {version} here",
                    hint="install the same on every node",
                )
