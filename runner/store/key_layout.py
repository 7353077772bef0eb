"""Says which keys the files of a run have below a store's address.

`<run id>/manifest.json`
`<run id>/logs/<source level>/<problem>.log`
`<run id>/<source level>/<problem>/result.json`
`<run id>/<source level>/<problem>/files-<digest>.zip`   the small files that result.json lists
`<run id>/<source level>/<problem>/files-<digest>/...`   large files; small ones for people

The digest is over the list of files and their sha256. So two attempts whose files differ never
write the same key, and an upload that broke off is continued under its old keys. See
docs/decisions/results-in-a-store.md.
"""

import hashlib
import json
from pathlib import PurePosixPath

from runner.store.manifest import MANIFEST_FILE
from runner.store.result import RESULT_FILE, ProblemResult

MARKER = "kdrun.json"
"""Key of the object that marks a store and gives the version of its layout."""
LAYOUT = 2
LOGS = "logs"
STEPS = "steps/"
"""Files below this folder are stored only in the zip.

They are two thirds of all files, mostly copies of components that nobody opens one by one."""


def manifest_key(run_id: str) -> str:
    return f"{run_id}/{MANIFEST_FILE}"


def log_key(run_id: str, label: str) -> str:
    return f"{run_id}/{LOGS}/{label}.log"


def result_key(run_id: str, label: str) -> str:
    return f"{run_id}/{label}/{RESULT_FILE}"


def files_prefix(run_id: str, result: ProblemResult) -> str:
    """Return the prefix of the keys of a result's files; its zip is the prefix with `.zip`."""
    listing = json.dumps(result.files, sort_keys=True).encode()
    return f"{run_id}/{result.label}/files-{hashlib.sha256(listing).hexdigest()[:16]}"


def is_unsafe_name(name: str) -> bool:
    """Return whether a file's name from a store would lead out of the directory it is put into."""
    path = PurePosixPath(name)
    return (
        path.as_posix() != name
        or path.is_absolute()
        or ".." in path.parts
        or name == "."
        or "\\" in name
        or not name.isprintable()
    )
