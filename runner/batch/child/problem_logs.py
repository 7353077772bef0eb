"""This file knows about logs: what a problem's own process printed, kept and found again.

A log is written as it is printed, in the run's folder. When the problem has ended it is kept with
its decomposition, too, and goes to the store, so that it outlives the machine.
"""

import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from runner.batch.stored_results import looked_at, status_command
from runner.config import Settings
from runner.errors import StoreError, UsageError, suggest_names
from runner.problems import find_labels
from runner.store import key_layout
from runner.store.directory import DirectoryStore
from runner.store.manifest import Manifest

KEPT = "verification/log.txt"
"""In a decomposition; beside the other files that no two attempts make alike."""
HIDDEN = b"[hidden]"

_SECRETS = re.compile(
    r"SECRET|TOKEN|PASS(WORD|WD)?$|CREDENTIAL|(API|ACCESS|PRIVATE)_?KEY|KEY$|(^|_)(AUTH|PAT)$",
    re.IGNORECASE,
)
_LEAST = 8
"""Characters of a value that is hidden: a shorter one would be found where it is not meant."""


def hide_credentials(
    log: Path, environment: Mapping[str, str] = os.environ, also: Collection[str] = ()
) -> None:
    """Take this process' credentials, and the values of the variables in `also`, out of a log.

    The child was never told them; but it may have read them from where this user may read.
    """
    data = clean = log.read_bytes()
    for name, value in environment.items():
        if (name in also or _SECRETS.search(name)) and len(value) >= _LEAST:
            clean = clean.replace(value.encode(errors="surrogateescape"), HIDDEN)
    if clean != data:
        log.write_bytes(clean)


def keep(log: Path, decomposition: Path) -> None:
    """Put a finished problem's log, where it printed anything, among its files."""
    if log.is_file():
        kept = decomposition / KEPT
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(log, kept)


def read(settings: Settings, run_id: str, problem: str) -> bytes:
    """What a run's problem has printed until now: from the named store, or else from here.

    Raises:
        UsageError: no problem of the run has this name, or several have.
        StoreError: no such run, or the store cannot be read.
    """
    if settings.store is None:
        output = DirectoryStore(settings.output)
        manifest = output.manifest(run_id)
        folder = output.run_directory(run_id) / key_layout.LOGS
        running = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.log")]
        label = _label(settings, manifest, [path.as_posix() for path in running], problem)
        try:
            return output.log_path(run_id, label).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from error
    store = looked_at(settings)
    label = _label(settings, store.manifest(run_id), [], problem)
    blob = store.objects.get(key_layout.log_key(run_id, label))
    return blob.data if blob else b""


def _label(settings: Settings, manifest: Manifest, running: Sequence[str], problem: str) -> str:
    """Return the one of the run's problems that `vit_block`, `level3/vit_block` or a glob means."""
    labels = sorted({*(row.label for row in manifest.rows), *running})
    if problem in labels:
        return problem
    found = find_labels(labels, problem)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{problem}: may be {', '.join(found[:3])}", hint="name one of them")
    known = labels if "/" in problem else [label.rpartition("/")[2] for label in labels]
    hint = suggest_names(problem, known)
    raise UsageError(
        f"{problem}: none of the {len(labels)} problems of {manifest.run_id} so far",
        hint=f"{hint} (`{status_command(settings, manifest.run_id)}` lists them)",
    )
