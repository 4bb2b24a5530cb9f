"""Downloads, and what killed processes leave half-written: a living one's files stay."""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from file_server import serving
from full_disk import files_of_at_most
from killed import killed_at
from moelaws.files import atomic
from moelaws.files import download as module
from moelaws.files.atomic import replacing, replacing_folder, write_json, write_text
from moelaws.files.download import download
from moelaws.files.leftovers import sweep, temporary
from moelaws.files.lock import acquire
from moelaws.spec.errors import UserError

USERS = ["notes.tmp.json", ".config.mine", ".config.mine.tmp.json", ".lock.mine", ".a.1-2-3.tmp"]


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.fixture
def users(tmp_path):
    for name in USERS:
        (tmp_path / name).write_text("mine")
    return sorted(USERS)


def test_the_next_writer_in_the_folder_removes_what_a_killed_one_left(tmp_path, users):
    assert killed_at(0, lambda: write_json(tmp_path / "fit.json", {"n": 1}))
    assert len(names(tmp_path)) == len(users) + 1
    write_text(tmp_path / "other.md", "whole")
    assert names(tmp_path) == sorted([*users, "other.md"])


def test_what_a_living_process_writes_stays(tmp_path):
    write = (
        "import sys; from pathlib import Path; from moelaws.files.atomic import replacing\n"
        "with replacing(Path(sys.argv[1])) as path:\n"
        "    path.write_text('of a living process'); print('half', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", write, tmp_path / "table.parquet"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "half\n"
        with acquire(tmp_path):
            write_text(tmp_path / "table.parquet", "ours")
        other.communicate("go on\n")
    assert other.returncode == 0
    assert names(tmp_path) == ["table.parquet"]
    assert (tmp_path / "table.parquet").read_text() == "of a living process"


def test_folders_go_whole_and_links_without_what_they_lead_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "text").write_text("mine")

    def work():
        folder = temporary(tmp_path / "corpus")
        folder.mkdir()
        (folder / "rows").write_text("gigabytes")
        temporary(tmp_path / "corpus").symlink_to(tmp_path / "kept")

    assert not killed_at(0, work)
    assert len(names(tmp_path)) == 3
    sweep(tmp_path)
    assert names(tmp_path) == ["kept"]
    assert names(tmp_path / "kept") == ["text"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_kill_anywhere_leaves_the_old_folder_or_the_new_one(tmp_path, monkeypatch, exchanges):
    """Where the file system cannot exchange two, the next call puts back what a kill moved away."""
    out, point, found = tmp_path / "out", 0, set()
    if not exchanges:
        monkeypatch.setattr(atomic, "_exchanged", lambda one, other: False)

    def replace(text):
        with replacing_folder(out) as work:
            found.update(path.read_text() for path in out.glob("text"))
            (work / "text").write_text(text)

    replace("old")
    while killed_at(point, lambda: replace("new")):
        assert not exchanges or (out / "text").read_text() in ("old", "new")
        found.clear()
        replace("old")
        assert found in ({"old"}, {"new"})
        assert names(tmp_path) == ["out"]
        point += 1
    assert point > (0 if exchanges else 2)


def test_what_another_host_left_goes_only_under_the_lock(tmp_path, users):
    own = temporary(tmp_path / "history.parquet").name
    host = own.split(".")[2].partition("-")[0]
    foreign = tmp_path / own.replace(host, "0123456789ab")
    foreign.write_text("half")
    write_text(tmp_path / "config.json", "{}")
    sweep(tmp_path)
    assert foreign.exists()
    with acquire(tmp_path):
        assert names(tmp_path) == sorted([*users, "config.json", "lock"])


def test_a_lock_taker_killed_anywhere_leaves_nothing_for_the_next(tmp_path, users):
    def work():
        with acquire(tmp_path):
            write_text(tmp_path / "config.json", "{}")

    point = 0
    while killed_at(point, work):
        with acquire(tmp_path):
            assert set(names(tmp_path)) <= {*users, "config.json", "lock"}
        assert set(names(tmp_path)) <= {*users, "config.json"}
        point += 1
    assert point == 4  # the draft linked, the draft removed, the file renamed, the lock removed


def test_a_waiting_process_goes_on_when_its_draft_is_swept(tmp_path, monkeypatch):
    """A holder on another host cannot tell whether a draft's owner lives."""
    link = os.link

    def swept(draft, path):
        monkeypatch.setattr(os, "link", link)
        os.unlink(draft)
        link(draft, path)

    monkeypatch.setattr(os, "link", swept)
    with acquire(tmp_path, heartbeat=0.01) as lock:
        assert lock.held()


def test_a_long_name_has_room_for_its_temporary(tmp_path):
    with replacing(tmp_path / ("n" * 240 + ".json")) as path:
        path.write_text("{}")
    assert names(tmp_path) == ["n" * 240 + ".json"]


HIDDEN = """
import sys
import tempfile
from pathlib import Path
from moelaws.files.atomic import write_text
from moelaws.files.lock import holder
folder = Path(sys.argv[1])
write_text(folder / "table", "ours")
print(holder(folder)["pid"])
"""


def as_another_user(*words):
    """Runs ``words`` as nobody, who sees no process but its own, as on many clusters."""
    mount = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534"
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{mount} --clear-groups "$@"', "sh", *words],
        capture_output=True,
        text=True,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts /proc")
def test_what_a_hidden_process_of_another_user_holds_stays():
    if as_another_user(sys.executable, "-c", "import moelaws.files.leftovers").returncode:
        pytest.skip("/proc cannot be mounted here, or nobody else can read this checkout")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with acquire(folder), replacing(folder / "fit.json") as path:
            path.write_text("half")
            for file in (folder, *folder.iterdir()):
                file.chmod(0o777)
            seen = as_another_user(sys.executable, "-c", HIDDEN, name)
            assert seen.stdout == f"{os.getpid()}\n", seen.stderr
            assert names(folder) == sorted([path.name, "lock", "table"])


DATA = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(scope="module")
def server():
    with serving({"runs.csv": DATA}) as state:
        yield state


@pytest.mark.parametrize("kind", ["", "endless/"])
def test_a_file_arrives_with_its_digest(server, kind, tmp_path):
    seen = []
    url = f"{server.address}/{kind}runs.csv"
    download(url, tmp_path / "new/runs.csv", SHA256, lambda *so_far: seen.append(so_far))
    assert (tmp_path / "new/runs.csv").read_bytes() == DATA
    assert seen[-1] == (len(DATA), None if kind else len(DATA))


@pytest.mark.parametrize(
    ("path", "sha256", "reason"),
    [
        ("cut/runs.csv", SHA256, "the transfer was cut after 128,000 of 256,000 bytes"),
        ("huge/runs.csv", SHA256, r"has 2,000,000 MB; at most 1,074 MB are read"),
        ("runs.csv", "0" * 64, f"the SHA-256 of what is there is {SHA256}"),
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


@pytest.mark.parametrize(
    "url", ["", "file:///etc/hosts", "http://[", "http://127.0.0.1:1/x", "http://" + "x" * 900]
)
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
