"""Opens the subject of a report, from this machine or pulled temporarily from a store."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from runner.batch import stored_results
from runner.config import Settings
from runner.quantities import pluralize
from runner.report.subject import Subject, find_subject
from runner.store.manifest import MANIFEST_FILE


@contextmanager
def open_subject(name: str, settings: Settings) -> Iterator[Subject]:
    """Yield the subject that `RUN|DIR` names on this machine, or else in the store.

    A run from the store is pulled into a temporary directory, which is deleted at the end. Problems
    that the store lacks or has damaged are named in the notes.

    Raises:
        KdrunError: as `find_subject` and `stored_results.bring` do.
    """
    is_local = Path(name).exists() or (settings.output / "runs" / name / MANIFEST_FILE).exists()
    if settings.store is None or is_local:
        yield find_subject(name, settings.output)
        return
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        outcomes = stored_results.pull_results(settings, name, Path(aside), lambda outcome: None)
        subject = find_subject(name, Path(aside))
        failures = [outcome for outcome in outcomes if not outcome.is_present]
        notes = subject.notes
        if failures:
            first = failures[0]
            failure = f"{first.label}: {first.state} {first.detail}".rstrip()
            notes = (*notes, f"The store lacks {pluralize(len(failures), 'problem')}: {failure}.")
        yield replace(subject, place=Path(), notes=notes)
