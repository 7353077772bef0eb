"""Defines `kdrun doctor`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from runner.cli.help import examples
from runner.cli.options import JSON, SettingsCommand, new_console, settings_from


@click.command(
    cls=SettingsCommand,
    settings=("output", "store", "data", "num_gpus", "device"),
    epilog=examples("kdrun doctor", "kdrun doctor --store s3://results/kdrun"),
)
@JSON
def doctor(config: Path | None, as_json: bool, **flags: Any) -> int:
    """Check what a run needs: PyTorch, Ray, memory, GPUs, the store.

    Exit code 0 where a run can begin, else 1.
    """
    from runner.cli.doctor import examine

    console = new_console(stderr=as_json)
    findings = []
    for finding in examine(settings_from(flags, config)):
        mark = "ok " if finding.well else "NOT"
        console.print(f"{mark}  {finding.what:8} {finding.said}", soft_wrap=True)
        findings.append(finding)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    return 0 if all(finding.well for finding in findings) else 1
