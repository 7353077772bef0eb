"""Reads and writes a store's objects in a bucket of S3, or of a compatible service, with boto3."""

import base64
import hashlib
import mimetypes
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import boto3
from boto3.s3.transfer import TransferConfig, create_transfer_manager
from botocore import exceptions as boto
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.handlers import add_expect_header
from botocore.parsers import ResponseParserError
from s3transfer.exceptions import RetriesExceededError
from urllib3.exceptions import ProtocolError

from runner import __version__
from runner.errors import StoreError, UsageError
from runner.store.objects import IN_FLIGHT, SCHEME, Address, Addressing, Blob, Checksums, Conflict
from runner.store.result import sha256_of
from runner.store.storage_errors import REACH, explain_error
from runner.store.zip_packing import changed_file_error

MIB = 1 << 20
SMALL_BYTES = MIB
"""Objects up to this size are sent from memory in one request, larger ones by boto3's manager."""
TRANSFER = TransferConfig(
    multipart_threshold=8 * MIB,
    multipart_chunksize=8 * MIB,
    max_concurrency=8,
    io_chunksize=MIB,
    max_io_queue=32,
)
"""One setting for all large files of this process together: it bounds the memory they take."""
LARGE_BYTES = 256 * MIB
"""Objects above this size are fetched in ranges, several at once, and read again for their digest.

Below it ranges cost more than they gain, since several objects are fetched at once anyway."""
READ_BYTES = 96 << 10
"""Bytes that are read of a response body at a time.

From 128 KiB on, malloc asks the kernel for fresh pages for each read, and having those pages zeroed
costs more than receiving the bytes."""
READ_TRIES = 6
"""Attempts to read one response body: boto3 retries a request, but not a body that breaks off."""
DIGEST = "kdrun-sha256"
"""Metadata key under which every object that kdrun writes has its sha256."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{1,254}")
_MISSING_CODES = {"NoSuchKey", "404", "NotFound"}
_CONFLICT_CODES = {"PreconditionFailed", "412", "ConditionalRequestConflict", "409"}
_BODY_ERRORS = (
    boto.IncompleteReadError,
    boto.ResponseStreamingError,
    boto.ReadTimeoutError,
    boto.FlexibleChecksumError,
    boto.ConnectionClosedError,
    ProtocolError,  # botocore reads the body of an error response itself, and lets this through
)

R = TypeVar("R")


class BucketObjects:
    """Stores objects under one prefix of a bucket; implements `Objects`."""

    def __init__(self, address: Address, *, patient: bool = True) -> None:
        bucket, _, prefix = address.uri.removeprefix(SCHEME).partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise UsageError(
                f"--store {address.uri}: no name of a bucket", hint="such as s3://bucket/prefix"
            )
        self.bucket = bucket
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self.uri = f"{SCHEME}{bucket}/{self.prefix}".rstrip("/")
        self.checksums = address.checksums
        with self._translate_errors():
            self.client, self.transfer = _client(
                address.endpoint_url, address.addressing, address.checksums, patient
            )

    def put(self, key: str, source: Path, sha256: str) -> None:
        options: dict[str, Any] = {"Metadata": {DIGEST: sha256}, "ContentType": _content_type(key)}
        if source.stat().st_size > SMALL_BYTES:
            with self._translate_errors():
                self.transfer.upload(
                    str(source), self.bucket, self.prefix + key, extra_args=options
                ).result()
            return
        data = source.read_bytes()
        digest = hashlib.sha256(data).digest()
        if digest.hex() != sha256:
            raise changed_file_error(source)
        if self.checksums == "when_supported":
            options["ChecksumSHA256"] = base64.b64encode(digest).decode()
        with self._translate_errors():
            self.client.put_object(Bucket=self.bucket, Key=self.prefix + key, Body=data, **options)

    def put_if(self, key: str, data: bytes, expected: str | None) -> str:
        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        try:
            with self._translate_errors():
                answer = self.client.put_object(
                    Bucket=self.bucket,
                    Key=self.prefix + key,
                    Body=data,
                    ContentType=_content_type(key),
                    Metadata={DIGEST: hashlib.sha256(data).hexdigest()},
                    **condition,
                )
        except _MissingObject:  # the object that was to be replaced does not exist
            raise Conflict(key) from None
        return self._version(answer)

    def get(self, key: str) -> Blob | None:
        def download() -> Blob:
            answer = self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)
            return Blob(answer["Body"].read(), self._version(answer))

        return self._read_with_retries(download)

    def fetch(self, key: str, path: Path) -> str | None:
        def download() -> str:
            answer = self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)
            if answer["ContentLength"] > LARGE_BYTES:
                answer["Body"].close()
                self.transfer.download(self.bucket, self.prefix + key, str(path)).result()
                return sha256_of(path)
            digest = hashlib.sha256()
            with path.open("wb") as file:
                for chunk in answer["Body"].iter_chunks(READ_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
            return digest.hexdigest()

        return self._read_with_retries(download)

    def sha256(self, key: str) -> str | None:
        def compute_digest() -> str:
            digest = hashlib.sha256()
            answer = self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)
            for chunk in answer["Body"].iter_chunks(READ_BYTES):
                digest.update(chunk)
            return digest.hexdigest()

        try:
            with self._translate_errors():
                answer = self.client.head_object(Bucket=self.bucket, Key=self.prefix + key)
                digest: str | None = answer["Metadata"].get(DIGEST)
        except _MissingObject:
            return None
        return digest or self._read_with_retries(compute_digest)

    def list_objects(self, prefix: str) -> Iterator[tuple[str, int]]:
        for page in self._pages(prefix):
            for entry in page.get("Contents", []):
                yield entry["Key"].removeprefix(self.prefix), entry["Size"]

    def folders(self, prefix: str) -> list[str]:
        below = self.prefix + prefix
        return [
            entry["Prefix"].removeprefix(below).rstrip("/")
            for page in self._pages(prefix, Delimiter="/")
            for entry in page.get("CommonPrefixes", [])
        ]

    def _version(self, answer: Any) -> str:
        if "ETag" not in answer:
            raise StoreError(f"{self.uri}: the endpoint does not speak S3", hint=REACH)
        return str(answer["ETag"])

    def _pages(self, prefix: str, **options: str) -> Iterator[dict[str, Any]]:
        with self._translate_errors():
            pages = self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=self.prefix + prefix, **options
            )
            yield from pages

    def _read_with_retries(self, read: Callable[[], R]) -> R | None:
        """Return what `read` returns, retried if the body breaks off; None for a missing object."""
        for attempt in range(READ_TRIES):
            try:
                with self._translate_errors(
                    passed_through=_BODY_ERRORS if attempt + 1 < READ_TRIES else ()
                ):
                    return read()
            except _MissingObject:
                return None
            except _BODY_ERRORS:
                time.sleep(random.uniform(0, 0.1 * 2**attempt))
        raise AssertionError("unreachable")

    @contextmanager
    def _translate_errors(self, passed_through: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Turn boto3's exceptions into StoreError, _MissingObject or Conflict.

        Exceptions of the classes in `passed_through` pass unchanged: the caller handles them.
        """
        try:
            yield
        except passed_through:
            raise
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "?"))
            if code in _MISSING_CODES:
                raise _MissingObject from None
            if code in _CONFLICT_CODES:
                raise Conflict(code) from None
            raise explain_error(self.uri, error) from error
        except RetriesExceededError as error:
            raise explain_error(self.uri, error.last_exception) from error
        except (BotoCoreError, ResponseParserError, ProtocolError, ValueError) as error:
            raise explain_error(self.uri, error) from error


class _MissingObject(Exception):
    """The object does not exist."""


def _content_type(key: str) -> str:
    """Return a MIME type with which a browser shows a component instead of saving it."""
    if key.endswith((".py", ".md", ".log")):
        return "text/plain; charset=utf-8"
    return mimetypes.guess_type(key)[0] or "application/octet-stream"


@lru_cache(maxsize=1)
def _session() -> Any:
    """Return boto3's session, with credentials and region of AWS's environment or profile."""
    return boto3.session.Session()


@lru_cache(maxsize=8)
def _client(
    endpoint_url: str | None, addressing: Addressing, checksums: Checksums, patient: bool
) -> tuple[Any, Any]:
    """Return an S3 client and its manager of large transfers.

    They are cached for each set of arguments: creating them takes longer than most requests.
    """
    session = _session()
    # With an endpoint of the user's own, the bucket's name goes into the path: as a part of the
    # host's name it would need DNS entries that such services seldom have.
    has_endpoint = endpoint_url or any(
        map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    )
    client = session.client(
        "s3",
        endpoint_url=endpoint_url,
        region_name=session.region_name or "us-east-1",
        config=Config(
            retries={"mode": "adaptive", "total_max_attempts": 8 if patient else 2},
            connect_timeout=10 if patient else 5,
            read_timeout=60 if patient else 20,
            max_pool_connections=4 * IN_FLIGHT,
            s3={
                "addressing_style": "path" if has_endpoint and addressing == "auto" else addressing
            },
            request_checksum_calculation=checksums,
            response_checksum_validation=checksums,
            # Validating parameters costs botocore more time than the server needs for a request.
            user_agent=f"kdrun/{__version__} boto3/{boto3.__version__}",
            parameter_validation=False,
        ),
    )
    # Otherwise each small upload waits for a "100 Continue", which botocore reads byte by byte.
    client.meta.events.unregister("before-call.s3", add_expect_header)
    return client, create_transfer_manager(client, TRANSFER)
