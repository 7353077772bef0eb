"""Defines what a store needs of a bucket or a directory: objects with keys."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from runner.errors import require_package
from runner.store.result import Document

SCHEME = "s3://"
IN_FLIGHT = 16
"""Objects that one process sends or fetches at the same time."""

Addressing = Literal["auto", "path", "virtual"]
Checksums = Literal["when_supported", "when_required"]

T = TypeVar("T")
R = TypeVar("R")


class Address(Document):
    """Says where a store is and how to connect to it; holds no credentials."""

    uri: str
    """`s3://bucket/prefix`, or a directory."""
    endpoint_url: str | None = None
    """URL of an S3-compatible service; None for the one in AWS's environment or profile."""
    addressing: Addressing = "auto"
    checksums: Checksums = "when_supported"


@dataclass(frozen=True, slots=True)
class Blob:
    """The content of a small object, and the version that it was read at."""

    data: bytes
    version: str


class Conflict(Exception):
    """A conditional write found another version of the object than the expected one."""


class Objects(Protocol):
    """Objects under one address; a bucket and a directory implement it.

    Keys are relative to the address and use `/`. An object appears complete or not at all. Every
    method raises StoreError if the bucket or directory cannot be reached or refuses the request.
    """

    uri: str

    def put(self, key: str, source: Path, sha256: str) -> None:
        """Write an object from a file whose sha256 is given."""

    def put_if(self, key: str, data: bytes, expected: str | None) -> str:
        """Write a small object if it is at version `expected`, and return its new version.

        `expected` is None for an object that must not exist yet.

        Raises:
            Conflict: the object is at another version.
        """

    def get(self, key: str) -> Blob | None:
        """Return a small object, or None if it does not exist."""

    def fetch(self, key: str, path: Path) -> str | None:
        """Copy an object into a file, and return its sha256; None if there is no object."""

    def sha256(self, key: str) -> str | None:
        """Return the sha256 of an object, or None if it does not exist."""

    def list_objects(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield every key with this prefix, and the size of its object in bytes."""

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the folders directly below a prefix (empty, or ending in `/`)."""


def open_objects(address: Address, *, patient: bool = True) -> Objects:
    """Return the bucket or directory that an address names, without connecting to it yet.

    `patient=False` gives up soon: it is for finding out whether the service answers at all.

    Raises:
        UsageError: the address names no bucket.
        MissingPackageError: the address is in a bucket, and boto3 is not installed.
    """
    if address.uri.startswith(SCHEME):
        require_package("boto3", "s3", address.uri)
        from runner.store.bucket import BucketObjects

        return BucketObjects(address, patient=patient)
    from runner.store.folder import FolderObjects

    return FolderObjects(Path(address.uri))


def map_concurrently(
    function: Callable[[T], R], items: Iterable[T], at_once: int = IN_FLIGHT
) -> list[R]:
    """Return the function's result for every item, in order; `at_once` threads call it.

    The first exception cancels the calls that have not begun, and is raised.
    """
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
