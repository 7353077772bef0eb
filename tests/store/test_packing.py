"""Zips: what comes out is what went in, or is said to be damaged."""

import hashlib
import random
import zipfile
from pathlib import Path

import pytest
from documents import FILES, Make

from runner.errors import StoreError
from runner.store.zip_packing import DamagedPack, pack_files, unpack_files

SEED = 20260101


@pytest.fixture
def pack(make: Make, tmp_path: Path) -> bytes:
    result, directory = make()
    with pack_files(directory, result.files) as (path, digest):
        data = path.read_bytes()
    assert hashlib.sha256(data).hexdigest() == digest
    return data


def test_what_is_unpacked_is_what_was_packed(make: Make, pack: bytes, tmp_path: Path) -> None:
    result, _ = make()
    (tmp_path / "zip").write_bytes(pack)
    sizes = unpack_files(tmp_path / "zip", result.files, tmp_path / "to")
    assert sizes == {name: len(text.encode()) for name, text in FILES.items()}
    there = {p.relative_to(tmp_path / "to").as_posix(): p for p in (tmp_path / "to").rglob("*.*")}
    assert {name: path.read_text() for name, path in there.items()} == FILES


def test_a_file_that_changed_is_not_packed(make: Make) -> None:
    result, directory = make()
    (directory / "steps/step_1/refactored.py").write_text("changed")
    with (
        pytest.raises(StoreError, match=r"refactored\.py: changed while it was stored"),
        pack_files(directory, result.files),
    ):
        pass


def test_a_zip_with_any_bytes_wrong_gives_right_files_or_says_that_it_is_damaged(
    make: Make, pack: bytes, tmp_path: Path
) -> None:
    result, _ = make()
    chance = random.Random(SEED)
    path = tmp_path / "zip"
    damaged = 0
    for n in range(400):
        data = bytearray(pack)
        for _ in range(chance.choice((1, 1, 3, 20))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if n % 4 == 0:
            del data[chance.randrange(len(data)) :]
        path.write_bytes(data)
        try:
            sizes = unpack_files(path, result.files)
        except DamagedPack:
            damaged += 1
        else:
            assert all(sizes[name] == len(FILES[name].encode()) for name in sizes)
    assert damaged > 200


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_of_a_kind_that_kdrun_does_not_write_is_damaged(
    make: Make, tmp_path: Path, method: int
) -> None:
    result, _ = make()
    with zipfile.ZipFile(tmp_path / "zip", "w", method) as archive:
        archive.writestr("original.py", FILES["original.py"])
    with pytest.raises(DamagedPack) as caught:
        unpack_files(tmp_path / "zip", result.files)
    assert caught.value.member == "original.py"
