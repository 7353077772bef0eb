"""Runs into a bucket, as a person starts them, and what two runs of the same share."""

import os
import subprocess
from pathlib import Path
from typing import Any

from commands import KDRUN
from object_server import KEY, SECRET, Server

MEMORY = ("--memory", "5GiB")
WHOLE = '''\
"""Doubling, and then a sum that is rectified."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x * 2 + 1)


def get_inputs():
    return [torch.randn(2, 3)]


def get_init_inputs():
    return []
'''


def write(folder: Path, name: str, more: str = "", level: int = 2) -> Path:
    path = folder / f"level{level}" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WHOLE + more + "\n")
    return path


def environment(server: Server, **changes: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "KDRUN_"))}
    return kept | {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
        "KDRUN_S3_ENDPOINT_URL": server.url,
        **changes,
    }


def kdrun(
    *arguments: str, cwd: Path, server: Server, **changes: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [KDRUN, *arguments],
        cwd=cwd,
        env=environment(server, **changes),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def without_times(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows, save for what two runs of the same cannot share."""
    changing = {"seconds", "peak_memory_bytes", "node", "artifact_prefix", "result_sha256"}
    changing |= {"requested_memory_bytes", "seconds_by_stage", "cpu_seconds", "uploaded_bytes"}
    return [{k: v for k, v in row.items() if k not in changing} for row in manifest["rows"]]
