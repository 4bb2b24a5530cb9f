"""The verification of an archive: whole, or an error that says what is wrong with it."""

import hashlib
import stat
import subprocess
import zipfile

import pytest

from moelaws.spec.errors import UserError
from moelaws.workflow import archive

FILES = {"in/a.json": b'{"a": 1}', "in/b.csv": b"x,y\n" * 100, "README.txt": b"Read"}


def silent(*words):
    return None


@pytest.fixture
def path(tmp_path):
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in FILES.items()]
    return written(tmp_path / "x.zip", [*FILES.items(), ("SHA256SUMS", "".join(lines).encode())])


def of_kind(name, kind):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (kind | 0o777) << 16
    return entry


def with_sum(entries, name, content=b"x"):
    """A file more, whose digest stands among the sums, as whoever means harm would write it."""
    *others, (sums, lines) = entries
    line = f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()
    return [*others, (name, content), (sums, lines + line)]


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
        (lambda e: e[:-1], "is no archive of moelaws"),
        (lambda e: [*e[:-1], ("SHA256SUMS", b"{}")], "SHA256SUMS: '{}' is no digest and name"),
        (lambda e: [*e[:-1], ("SHA256SUMS", b"\xff")], "or it was cut short or damaged"),
        (lambda e: [*e[:-1], ("SHA256SUMS", b" " * 10**8 + b"{}")], "at most 100 MB are read"),
        *(
            (lambda e, kind=kind: [*e, (of_kind("in/d", kind), b"/etc")], "'in/d' is no plain file")
            for kind in (stat.S_IFLNK, stat.S_IFCHR)
        ),
        *(
            (lambda e, name=name: with_sum(e, name), "would be unpacked elsewhere")
            for name in ("/etc/x", "in/../../x", "C:/x", "in\\..\\x", "in/./a.json", "in//a.json")
        ),
        (lambda e: with_sum(e, "in/a.json"), "in/a.json is in it twice"),
        (lambda e: with_sum(e, "zeros", bytes(10**6)), "unpacked, has 1 MB; at most 0 MB are read"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_not_what_was_written_is_named(path, change, message, monkeypatch):
    monkeypatch.setattr(archive, "LARGEST", 1000)
    with zipfile.ZipFile(path) as old:
        entries = [(name, old.read(name)) for name in old.namelist()]
    written(path, change(entries))
    with pytest.raises(UserError, match=message):
        archive.check(path, silent)


def test_the_sums_are_those_that_sha256sum_checks(path, tmp_path):
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path / "in")
    subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path / "in", check=True)


def test_a_changed_byte_is_seen_or_changes_nothing_that_is_unpacked(path):
    whole, sums = path.read_bytes(), archive.check(path, silent)
    assert set(sums) == set(FILES)
    for place in range(0, len(whole), 2):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            kept = archive.check(path, silent)
        except UserError:
            continue
        assert kept == sums


def test_a_cut_or_foreign_file_is_no_archive(path):
    whole = path.read_bytes()
    for content in (whole[:-30], whole[: len(whole) // 2], b"", b"no archive"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="is no ZIP file, or it was cut short or damaged"):
            archive.check(path, silent)
    with pytest.raises(UserError, match="no such file"):
        archive.check(path.with_name("other.zip"), silent)
