"""This file knows about the seam of a store: objects with keys, kept in a bucket or a directory."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from runner.errors import require_package
from runner.store.result import Document

SCHEME = "s3://"
IN_FLIGHT = 16
"""Objects that one process sends or fetches at once."""

Addressing = Literal["auto", "path", "virtual"]
Checksums = Literal["when_supported", "when_required"]

T = TypeVar("T")
R = TypeVar("R")


class Address(Document):
    """Where a store is and how it is spoken to; holds no credentials."""

    uri: str
    """`s3://bucket/prefix`, or a directory."""
    endpoint_url: str | None = None
    """Of an S3-compatible service; none: what the AWS environment or profile says."""
    addressing: Addressing = "auto"
    checksums: Checksums = "when_supported"


@dataclass(frozen=True, slots=True)
class Blob:
    """A small object: what is in it, and which of its versions that was."""

    data: bytes
    version: str


class Conflict(Exception):
    """A conditional write found another version there than the one that it was to replace."""


class Objects(Protocol):
    """What a store needs of the place it is in.

    Keys are relative to the address and use `/`. An object appears whole or not at all. Everything
    raises StoreError where the place does not answer, or not as asked.
    """

    uri: str

    def put(self, key: str, source: Path, sha256: str) -> None:
        """Write an object from a file whose digest is known."""

    def put_if(self, key: str, data: bytes, expected: str | None) -> str:
        """Write a small object if it is at version `expected` (None: not there); its new version.

        Raises:
            Conflict: somebody else was first.
        """

    def get(self, key: str) -> Blob | None:
        """A small object, or None where there is none."""

    def fetch(self, key: str, path: Path) -> str | None:
        """Copy an object into a file; the sha256 of what came, or None where there is none."""

    def sha256(self, key: str) -> str | None:
        """The digest of what is there, or None where there is nothing."""

    def listed(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Every key that starts so, and how many bytes are there."""

    def folders(self, prefix: str) -> list[str]:
        """Names directly below a prefix (empty, or up to a `/`) under which there are keys."""


def open_objects(address: Address, *, patient: bool = True) -> Objects:
    """The place that an address names; nothing is asked of it yet.

    An impatient one gives up soon: it is for finding out whether the place is there at all.

    Raises:
        UsageError: the address names no bucket.
        MissingPackageError: it is in a bucket, and boto3 is not installed.
    """
    if address.uri.startswith(SCHEME):
        require_package("boto3", "s3", address.uri)
        from runner.store.bucket import BucketObjects

        return BucketObjects(address, patient=patient)
    from runner.store.folder import FolderObjects

    return FolderObjects(Path(address.uri))


def each(function: Callable[[T], R], items: Iterable[T], at_once: int = IN_FLIGHT) -> list[R]:
    """The function of every item, several at once, in order; the first error ends it."""
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
