"""This file knows about where a run's files are below a store's address.

`<run id>/manifest.json`
`<run id>/logs/<source level>/<problem>.log`
`<run id>/<source level>/<problem>/result.json`
`<run id>/<source level>/<problem>/files-<digest>.zip`   the files that this result.json vouches for
`<run id>/<source level>/<problem>/files-<digest>/...`   the large ones, and copies to be looked at

The digest is that of the list of files and their sha256: two attempts that differ in anything never
write the same key, and an upload that broke off is found again. See
docs/decisions/results-in-a-store.md.
"""

import hashlib
import json
from pathlib import PurePosixPath

from runner.store.manifest import MANIFEST_FILE
from runner.store.result import RESULT_FILE, ProblemResult

MARKER = "kdrun.json"
"""At the head of every store: it says that this is one, and of which layout."""
LAYOUT = 2
LOGS = "logs"
STEPS = "steps/"
"""Two thirds of all files, mostly copies of components: nobody looks at one, so none is copied."""


def manifest_key(run_id: str) -> str:
    return f"{run_id}/{MANIFEST_FILE}"


def log_key(run_id: str, label: str) -> str:
    return f"{run_id}/{LOGS}/{label}.log"


def result_key(run_id: str, label: str) -> str:
    return f"{run_id}/{label}/{RESULT_FILE}"


def files_prefix(run_id: str, result: ProblemResult) -> str:
    """Below which the files of a result are, and beside which its zip is."""
    listing = json.dumps(result.files, sort_keys=True).encode()
    return f"{run_id}/{result.label}/files-{hashlib.sha256(listing).hexdigest()[:16]}"


def unsafe(name: str) -> bool:
    """Whether a name from a store would lead out of the directory that it is put in."""
    path = PurePosixPath(name)
    return (
        path.as_posix() != name
        or path.is_absolute()
        or ".." in path.parts
        or name == "."
        or "\\" in name
        or not name.isprintable()
    )
