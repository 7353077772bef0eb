"""Masks, copies and reads the logs of problems: the output of their child processes.

A log grows in the run's folder while the problem runs. When the problem has ended, the log is
copied into its decomposition and uploaded to the store, so that it outlives the machine.
"""

import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from runner.batch.stored_results import open_readable_store, status_command
from runner.config import Settings
from runner.errors import StoreError, UsageError, suggest_names
from runner.problems import find_labels
from runner.store import key_layout
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest

LOG_PATH = "verification/log.txt"
"""Path of the log in a decomposition, next to other files that differ between any two attempts."""
MASK = b"[hidden]"

_SECRET_NAMES = re.compile(
    r"SECRET|TOKEN|PASS(WORD|WD)?$|CREDENTIAL|(API|ACCESS|PRIVATE)_?KEY|KEY$|(^|_)(AUTH|PAT)$",
    re.IGNORECASE,
)
_MIN_SECRET_LENGTH = 8
"""Shortest value that is masked; shorter ones would match unrelated text."""


def hide_credentials(
    log: Path, environment: Mapping[str, str] = os.environ, extra_names: Collection[str] = ()
) -> None:
    """Mask the values of credentials, and of the variables in `extra_names`, in a log.

    The child did not get these variables, but its code may have read them elsewhere, such as in
    this user's files.
    """
    data = masked = log.read_bytes()
    for name, value in environment.items():
        if (name in extra_names or _SECRET_NAMES.search(name)) and len(value) >= _MIN_SECRET_LENGTH:
            masked = masked.replace(value.encode(errors="surrogateescape"), MASK)
    if masked != data:
        log.write_bytes(masked)


def copy_log(log: Path, decomposition: Path) -> None:
    """Copy a finished problem's log, if there is one, into its decomposition."""
    if log.is_file():
        destination = decomposition / LOG_PATH
        destination.parent.mkdir(exist_ok=True)
        shutil.copyfile(log, destination)


def read_log(settings: Settings, run_id: str, problem: str) -> bytes:
    """Return a problem's log so far, from the settings' store or else from the output folder.

    Raises:
        UsageError: no problem of the run has this name, or several have.
        StoreError: no such run, or the store cannot be read.
    """
    if settings.store is None:
        output = DirectoryStore(settings.output)
        manifest = output.manifest(run_id)
        folder = output.run_directory(run_id) / key_layout.LOGS
        running_paths = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.log")]
        label = _find_label(
            settings, manifest, [path.as_posix() for path in running_paths], problem
        )
        try:
            return output.log_path(run_id, label).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from error
    store = open_readable_store(settings)
    label = _find_label(settings, store.manifest(run_id), [], problem)
    blob = store.objects.get(key_layout.log_key(run_id, label))
    return blob.data if blob else b""


def _find_label(
    settings: Settings, manifest: Manifest, running_labels: Sequence[str], problem: str
) -> str:
    """Return the label of the one problem that `vit_block`, `level3/vit_block` or a glob matches.

    Raises:
        UsageError: no problem of the run matches, or several do.
    """
    labels = sorted({*(row.label for row in manifest.rows), *running_labels})
    if problem in labels:
        return problem
    matches = find_labels(labels, problem)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{problem}: may be {', '.join(matches[:3])}", hint="name one of them")
    candidates = labels if "/" in problem else [label.rpartition("/")[2] for label in labels]
    hint = suggest_names(problem, candidates)
    raise UsageError(
        f"{problem}: none of the {len(labels)} problems of {manifest.run_id} so far",
        hint=f"{hint} (`{status_command(settings, manifest.run_id)}` lists them)",
    )
