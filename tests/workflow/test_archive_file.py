"""The verification of an archive: whole, or an error that says what is wrong with it."""

import hashlib
import json
import stat
import zipfile

import pytest

from moelaws.spec.errors import UserError
from moelaws.workflow import archive

FILES = {"in/a.json": b'{"a": 1}', "in/b.csv": b"x,y\n" * 100, "README.txt": b"Read"}

ABOUT = {"format": "moelaws archive 1", "studies": ["sparsity"], "tier": "demo", "runs": 1}
ABOUT |= {"source": "trained", "stale_runs": 0, "commit": "", "uncommitted_changes": False}


def silent(*words):
    return None


@pytest.fixture
def path(tmp_path):
    sums = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in FILES.items()
    }
    manifest = json.dumps({**ABOUT, "files": sums}).encode()
    return written(tmp_path / "x.zip", [*FILES.items(), ("manifest.json", manifest)])


def manifest_with(entries, **changes):
    about = json.loads(dict(entries)["manifest.json"]) | changes
    return [*entries[:-1], ("manifest.json", json.dumps(about))]


def link(name):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


def written(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in entries:
            packed.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: [(n, c[:-1] + b"z" if n == "in/b.csv" else c) for n, c in e], "csv is damaged"),
        (lambda e: [(n, c) for n, c in e if n != "in/b.csv"], "in/b.csv is missing"),
        (lambda e: [*e, ("in/c.csv", b"")], "in/c.csv was added"),
        (lambda e: [*e, ("../c.csv", b"")], "'../c.csv' would be unpacked elsewhere"),
        (lambda e: [(n, c) for n, c in e if n != "manifest.json"], "is no archive of moelaws"),
        (lambda e: [*e[:-1], ("manifest.json", b"{}")], "manifest.json: studies is missing"),
        (lambda e: [*e[:-1], ("manifest.json", b" " * 10**8 + b"{}")], "at most 100 MB are read"),
        (lambda e: manifest_with(e, files={"in/a.json": 5}), "files.in/a.json is 5; it must be"),
        (lambda e: [*e, (link("in/d"), b"/etc/passwd")], "'in/d' is a link"),
    ],
)
def test_what_is_not_what_was_written_is_named(path, change, message):
    with zipfile.ZipFile(path) as old:
        entries = [(name, old.read(name)) for name in old.namelist()]
    written(path, change(entries))
    with pytest.raises(UserError, match=message):
        archive.check(path, silent)


def test_a_changed_byte_is_seen_or_changes_nothing_that_is_unpacked(path):
    whole, manifest = path.read_bytes(), archive.check(path, silent)
    assert set(manifest.files) == set(FILES)
    for place in range(0, len(whole), 2):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            kept = archive.check(path, silent)
        except UserError:
            continue
        assert kept == manifest


def test_a_cut_or_foreign_file_is_no_archive(path):
    whole = path.read_bytes()
    for content in (whole[:-30], whole[: len(whole) // 2], b"", b"no archive"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="is no ZIP file, or it was cut short or damaged"):
            archive.check(path, silent)
    with pytest.raises(UserError, match="no such file"):
        archive.check(path.with_name("other.zip"), silent)
