"""A checkpoint that cannot be trusted is refused with its reason."""

import pickle

import pytest
import torch

from moelaws.records.files import remove
from moelaws.spec.errors import UserError
from moelaws.training import checkpoint

IDENTITY = {"run": "abc", "data": "123"}
STATE = {"weights": torch.arange(1000.0), "step": 7, "nested": {"x": [1, 2.5, "text"]}}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run" / "latest.pt"
    checkpoint.save(path, IDENTITY, STATE)
    return path


def test_what_was_saved_comes_back(saved):
    state, refused = checkpoint.load(saved, IDENTITY)
    assert refused == ""
    assert torch.equal(state["weights"], STATE["weights"])
    assert state["nested"] == STATE["nested"]
    assert [p.name for p in saved.parent.iterdir()] == ["latest.pt"]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_one_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    state, refused = checkpoint.load(saved, IDENTITY)
    assert state is None
    assert "cannot be read" in refused


def test_a_single_wrong_bit_is_refused(saved):
    """torch.load alone would take it for a weight."""
    content = bytearray(saved.read_bytes())
    place = content.find(STATE["weights"].numpy().tobytes()) + 400
    content[place] ^= 1
    saved.write_bytes(content)
    state, refused = checkpoint.load(saved, IDENTITY)
    assert state is None
    assert "damaged" in refused


def test_a_write_that_fails_keeps_the_one_before(saved, monkeypatch):
    def full(content, path):
        path.write_bytes(b"half")
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 53056")

    monkeypatch.setattr(checkpoint.torch, "save", full)
    with pytest.raises(UserError, match="is the disk full"):
        checkpoint.save(saved, IDENTITY, STATE)
    assert checkpoint.load(saved, IDENTITY)[0] is not None
    assert [p.name for p in saved.parent.iterdir()] == ["latest.pt"]


@pytest.mark.parametrize("key", ["run", "data"])
def test_one_of_another_run_or_other_data_is_refused(saved, key):
    state, refused = checkpoint.load(saved, {**IDENTITY, key: "other"})
    assert state is None
    assert f"of another {key}" in refused


def test_one_of_another_version_is_refused(saved, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
    assert checkpoint.load(saved, IDENTITY) == (None, f"{saved}: of another version")


class Bomb:
    def __reduce__(self):
        return (open, ("/dev/null",))


def test_code_in_a_checkpoint_is_never_run(saved):
    content = {"format": checkpoint.FORMAT, "identity": IDENTITY, "state": Bomb()}
    saved.write_bytes(pickle.dumps(content, protocol=2))
    assert checkpoint.load(saved, IDENTITY)[0] is None
    torch.save(content, saved)
    state, refused = checkpoint.load(saved, IDENTITY)
    assert state is None
    assert "cannot be read" in refused


def test_what_a_killed_writer_left_is_cleared(saved):
    leftover = saved.with_name(".latest.0123abcd.tmp.pt")
    leftover.write_bytes(b"half")
    assert checkpoint.load(saved, IDENTITY)[1] == ""
    assert not leftover.exists()
    leftover.write_bytes(b"half")
    remove(saved)
    assert not saved.parent.exists()
    remove(saved)
