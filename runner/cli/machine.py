"""This file knows about the command that looks at what a run needs here."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from runner.cli.options import CONFIG, DATA, JSON, OUTPUT, STORE, new_console, settings_from


@click.command()
@OUTPUT
@STORE
@DATA
@click.option("--num-gpus", type=float, help="GPUs that must be here; default 0.")
@click.option("--device", type=click.Choice(["cpu", "cuda", "auto"]))
@CONFIG
@JSON
def doctor(config: Path | None, as_json: bool, **flags: Any) -> int:
    """Look at what a run needs here: exit 0 where it can begin, else 1."""
    from runner.batch.doctor import examine

    console = new_console(stderr=as_json)
    findings = []
    for finding in examine(settings_from(flags, config)):
        mark = "ok " if finding.well else "NOT"
        console.print(f"{mark}  {finding.what:8} {finding.said}", soft_wrap=True)
        findings.append(finding)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    return 0 if all(finding.well for finding in findings) else 1
