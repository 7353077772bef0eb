"""This file knows about the command that writes manifests for a run on Kubernetes."""

from pathlib import Path
from typing import Any

import click

from runner.cli.options import CONFIG, LEVEL, MODE, PROBLEM, STORE, settings_from


@click.group()
def k8s() -> None:
    """Write manifests for a run on Kubernetes."""


@k8s.command()
@LEVEL
@PROBLEM
@click.option("--data", type=click.Path(path_type=Path), help="Directory of problems in the image.")
@STORE
@click.option("--run-id", help="Name of the run; default kdrun.")
@click.option("--num-gpus", type=float, help="GPUs for each problem, in the overlay gpu.")
@MODE
@click.option("--trials", type=int, help="Seeds for each comparison; default 2.")
@click.option("--timeout", type=float, help="Seconds for one problem; default 1800.")
@click.option("--memory", help="For the problems of one pod; default 16GiB.")
@click.option("--image", help="Of kdrun; default kdrun:VERSION.")
@click.option("--gpu-image", help="Of GPU workers; default kdrun:VERSION-cuda.")
@click.option("--nodes", type=click.IntRange(min=1), help="Worker pods; default 2.")
@click.option("--cores", type=click.IntRange(min=1), help="Of each; default 4.")
@click.option(
    "--to", type=click.Path(file_okay=False, path_type=Path), default=Path("k8s"), show_default=True
)
@CONFIG
def render(
    image: str | None,
    gpu_image: str | None,
    nodes: int | None,
    cores: int | None,
    to: Path,
    config: Path | None,
    **flags: Any,
) -> int:
    """Write a kustomize base (a RayJob) and its overlays: local (a plain Job), gpu."""
    from runner.batch import kubernetes

    said = {"image": image, "gpu_image": gpu_image, "nodes": nodes, "cores": cores}
    pods = kubernetes.Pods(**{name: value for name, value in said.items() if value})  # type: ignore[arg-type]
    for path in kubernetes.write(settings_from(flags, config), pods, to):
        click.echo(path)
    return 0
