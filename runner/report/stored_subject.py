"""Opens the subject of a report, from this machine or pulled temporarily from a store."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from runner.batch import stored_results
from runner.config import Settings
from runner.quantities import counted
from runner.report.subject import Subject, find
from runner.store.manifest import MANIFEST_FILE


@contextmanager
def subject(what: str, settings: Settings) -> Iterator[Subject]:
    """Yield the subject that `RUN|DIR` names on this machine, or else in the store.

    A run from the store is pulled into a temporary directory, which is deleted at the end. Problems
    that the store lacks or has damaged are named in the notes.

    Raises:
        KdrunError: as `find_subject` and `stored_results.bring` do.
    """
    here = Path(what).exists() or (settings.output / "runs" / what / MANIFEST_FILE).exists()
    if settings.store is None or here:
        yield find(what, settings.output)
        return
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        done = stored_results.bring(settings, what, Path(aside), lambda one: None)
        found = find(what, Path(aside))
        bad = [one for one in done if not one.is_present]
        notes = found.notes
        if bad:
            first = bad[0]
            said = f"{first.label}: {first.state} {first.detail}".rstrip()
            notes = (*notes, f"The store lacks {counted(len(bad), 'problem')}: {said}.")
        yield replace(found, place=Path(), notes=notes)
