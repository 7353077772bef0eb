"""This file knows about what runs on the nodes of a cluster: the same kdrun, Python and PyTorch."""

import importlib.metadata
import platform

from runner import __version__
from runner.batch.cluster import in_short, nodes
from runner.errors import ClusterError

ANSWER_S = 120.0
"""For every node to start a worker."""


def installed() -> dict[str, str]:
    """What decides whether one machine's results are another's; imports none of it."""
    return {
        "kdrun": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "PyTorch": importlib.metadata.version("torch").partition("+")[0],  # built for CUDA or not
    }


def refuse_other_versions() -> None:
    """Ask every node that can work what it would work with.

    Raises:
        ClusterError: a node has another version of something, has no kdrun, or does not answer.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = [node for node in nodes() if node["Alive"] and node["Resources"].get("CPU")]
    ask = ray.remote(installed)
    asked = {
        ask.options(
            num_cpus=0,
            max_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote(): node["NodeManagerHostname"]
        for node in there
    }
    _, silent = (
        ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_S) if asked else ([], [])
    )
    if silent:
        raise ClusterError(
            f"{asked[silent[0]]}: no worker has answered for {ANSWER_S:.0f} s",
            hint="do Ray's own tasks run there?",
        )
    ours = installed()
    for reference, host in asked.items():
        try:
            theirs = ray.get(reference)
        except ray.exceptions.RayError as error:
            raise ClusterError(
                f"{host}: kdrun does not run there: {in_short(error)}",
                hint=f"install kdrun {__version__} on every node",
            ) from error
        for what, version in ours.items():
            if theirs[what] != version:
                raise ClusterError(
                    f"{host}: {what} {theirs[what]} there, {version} here",
                    hint="install the same on every node",
                )
