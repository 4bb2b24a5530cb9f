"""Archives: whole or an error that says what is wrong with them."""

import os
import zipfile

import pytest

from moelaws.records import archive
from moelaws.records.files import write_json
from moelaws.spec.errors import UserError


def silent(*words, **amounts):
    return None


@pytest.fixture
def files(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1})
    (tmp_path / "b.csv").write_text("x,y\n" * 1000)
    return {"in/a.json": tmp_path / "a.json", "in/b.csv": tmp_path / "b.csv", "README.txt": b"Read"}


@pytest.fixture
def path(tmp_path, files):
    path = tmp_path / "x.zip"
    archive.write(path, files, {"tier": "demo"}, silent)
    return path


def rewritten(path, change):
    """The archive with each (name, content) as ``change`` returns it, or without it."""
    with zipfile.ZipFile(path) as old:
        entries = [(name, old.read(name)) for name in old.namelist()]
    with zipfile.ZipFile(path, "w") as new:
        for name, content in change(entries):
            new.writestr(name, content)


def test_what_is_unpacked_is_what_was_packed_with_its_time(path, files, tmp_path):
    manifest = archive.check(path, silent)
    assert manifest["tier"] == "demo"
    assert set(manifest["files"]) == set(files)
    with zipfile.ZipFile(path) as packed:
        assert packed.testzip() is None
        assert packed.read("in/b.csv") == (tmp_path / "b.csv").read_bytes()


def test_the_same_files_give_the_same_bytes(path, files, tmp_path):
    backwards = dict(reversed(files.items()))
    archive.write(tmp_path / "y.zip", backwards, {"tier": "demo"}, silent)
    assert (tmp_path / "y.zip").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: [(n, c[:-1] + b"z" if n == "in/b.csv" else c) for n, c in e], "csv is damaged"),
        (lambda e: [(n, c) for n, c in e if n != "in/b.csv"], "in/b.csv is missing"),
        (lambda e: [*e, ("in/c.csv", b"")], "in/c.csv was added"),
        (lambda e: [*e, ("../c.csv", b"")], "'../c.csv' would be unpacked elsewhere"),
        (lambda e: [*e, ("/c.csv", b"")], "would be unpacked elsewhere"),
        (lambda e: [(n, c.replace(b"demo", b"gpu!")) for n, c in e], "manifest.json in it is dama"),
        (lambda e: [(n, c) for n, c in e if n != "manifest.json"], "is no archive of moelaws"),
    ],
)
def test_what_is_not_what_was_written_is_named(path, change, message):
    rewritten(path, change)
    with pytest.raises(UserError, match=message):
        archive.check(path, silent)


def test_a_changed_byte_is_seen_or_changes_nothing_that_is_unpacked(path):
    whole, manifest = path.read_bytes(), archive.check(path, silent)
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            kept = archive.check(path, silent)
        except UserError:
            continue
        assert kept == manifest
    path.write_bytes(whole)
    assert archive.check(path, silent) == manifest


def test_a_cut_or_foreign_file_is_no_archive(path):
    whole = path.read_bytes()
    for content in (whole[:-30], whole[: len(whole) // 2], b"", b"no archive"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="is no ZIP file, or it was cut short or damaged"):
            archive.check(path, silent)
    with zipfile.ZipFile(path, "w"):
        pass
    with pytest.raises(UserError, match="is no archive of moelaws"):
        archive.check(path, silent)
    with pytest.raises(UserError, match="no such file"):
        archive.check(path.with_name("other.zip"), silent)


def test_a_damaged_file_is_not_packed_and_no_half_archive_is_left(tmp_path, files):
    damaged = tmp_path / "a.json"
    damaged.write_text(damaged.read_text().replace("1", "2"))
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(UserError, match=r"a\.json: this file is damaged"):
        archive.write(tmp_path / "x.zip", files, {}, silent)
    assert sorted(os.listdir(tmp_path)) == before


def test_an_interrupted_archive_leaves_the_earlier_one(path, files):
    before = path.read_bytes()

    def interrupted(*words, **amounts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive.write(path, files, {}, interrupted)
    assert path.read_bytes() == before
    assert not [name for name in os.listdir(path.parent) if name.endswith(".tmp.zip")]
