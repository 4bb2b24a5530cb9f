"""A download is whole and right, or there is none and one line says why."""

import hashlib
import re

import pytest

from file_server import serving
from full_disk import files_of_at_most
from moelaws.files import download as module
from moelaws.files.download import download
from moelaws.spec.errors import UserError

DATA = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(scope="module")
def server():
    with serving({"runs.csv": DATA}) as state:
        yield state


@pytest.mark.parametrize("kind", ["", "endless/"])
@pytest.mark.parametrize("sha256", [SHA256, ""])
def test_a_file_arrives_with_its_digest(server, kind, sha256, tmp_path):
    seen = []
    url = f"{server.address}/{kind}runs.csv"
    download(url, tmp_path / "new/runs.csv", sha256, lambda *so_far: seen.append(so_far))
    assert (tmp_path / "new/runs.csv").read_bytes() == DATA
    assert seen[-1] == (len(DATA), None if kind else len(DATA))


@pytest.mark.parametrize(
    ("path", "sha256", "reason"),
    [
        ("none.csv", SHA256, "cannot be fetched: the server answers 404 Not Found"),
        ("cut/runs.csv", SHA256, "the transfer was cut after 128,000 of 256,000 bytes"),
        ("huge/runs.csv", SHA256, r"has 2,000,000 MB; at most 1,074 MB are read"),
        (
            "runs.csv",
            "0" * 64,
            f"the SHA-256 of what is there is {SHA256}, and that of runs.csv is",
        ),
        ("silent/runs.csv", SHA256, "cannot be fetched: .*timed out"),
    ],
)
def test_what_fails_leaves_nothing_new(server, path, sha256, reason, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    (tmp_path / "runs.csv").write_text("as it was")
    with pytest.raises(UserError, match=reason) as refused:
        download(f"{server.address}/{path}", tmp_path / "runs.csv", sha256, lambda *_: None)
    assert "\n" not in str(refused.value)
    assert [file.name for file in tmp_path.iterdir()] == ["runs.csv"]
    assert (tmp_path / "runs.csv").read_text() == "as it was"


NOWHERE = [
    *("", "ftp://127.0.0.1/x", "file:///etc/hosts", "http://", "http://[", "http://127.0.0.1:1/x"),
    *("http://no such host/x", "http://127.0.0.1:port/", "https://\x00/", "http://" + "x" * 900),
]


@pytest.mark.parametrize("url", NOWHERE)
def test_an_address_that_leads_nowhere_is_told_on_one_line(url, tmp_path):
    with pytest.raises(UserError, match=r"cannot be fetched: .") as refused:
        download(url, tmp_path / "x", "", lambda *_: None)
    assert re.fullmatch(r"[^\n]{1,400}", str(refused.value))
    assert not list(tmp_path.iterdir())


def test_a_full_disk_and_an_interruption_leave_nothing(server, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    url = f"{server.address}/runs.csv"
    with files_of_at_most(len(DATA) // 2), pytest.raises(UserError, match="cannot be written: Fil"):
        download(url, tmp_path / "runs.csv", SHA256, lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        download(url, tmp_path / "runs.csv", SHA256, interrupt)
    assert not list(tmp_path.iterdir())
