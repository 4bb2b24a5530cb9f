"""A checkpoint that cannot be trusted is refused with its reason."""

import json
import pickle

import pytest
import torch

from full_disk import files_of_at_most
from moelaws.records import seal
from moelaws.spec.errors import UserError
from moelaws.training import checkpoint

IDENTITY = {"run": "abc", "data": "123"}
STATE = {"weights": torch.arange(1000.0), "step": 7, "nested": {"x": [1, 2.5, "text"]}}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run" / "latest.json"
    checkpoint.save(path, IDENTITY, STATE)
    return path


def tensors(saved):
    return sorted(path for path in saved.parent.iterdir() if path != saved)


def test_what_was_saved_comes_back(saved):
    state, refused = checkpoint.load(saved, IDENTITY)
    assert refused == ""
    assert torch.equal(state["weights"].whole(), STATE["weights"])
    assert torch.equal(state["weights"].rows(10, 5), STATE["weights"][10:15])
    assert (state["step"], state["nested"]) == (7, STATE["nested"])


def test_the_newest_takes_the_place_of_the_one_before(saved):
    before = tensors(saved)
    checkpoint.save(saved, IDENTITY, {"weights": torch.zeros(3)})
    state, _ = checkpoint.load(saved, IDENTITY)
    assert torch.equal(state["weights"].whole(), torch.zeros(3))
    assert len(tensors(saved)) == 1
    assert tensors(saved) != before


@pytest.mark.parametrize("part", ["index", "tensors"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_one_is_refused(saved, part, share):
    path = saved if part == "index" else tensors(saved)[0]
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    state, refused = checkpoint.load(saved, IDENTITY)
    assert state is None
    assert "cannot be read" in refused


def test_one_whose_tensors_are_gone_is_refused(saved):
    tensors(saved)[0].unlink()
    state, refused = checkpoint.load(saved, IDENTITY)
    assert state is None
    assert "cannot be read" in refused


def test_a_single_wrong_bit_is_refused(saved):
    """It would be taken for a weight."""
    (path,) = tensors(saved)
    content = bytearray(path.read_bytes())
    place = content.find(STATE["weights"].numpy().tobytes()) + 400
    content[place] ^= 1
    path.write_bytes(content)
    state, refused = checkpoint.load(saved, IDENTITY)
    assert state is None
    assert "damaged" in refused


def test_one_that_lacks_rows_is_refused(tmp_path):
    """As where the file of one process took the place of another's."""
    path = tmp_path / "run" / "latest.json"
    checkpoint.save(path, IDENTITY, {"weights": checkpoint.Rows(torch.zeros(3, 2), 3, 8)})
    state, refused = checkpoint.load(path, IDENTITY)
    assert state is None
    assert "rows of /weights are missing" in refused


def test_a_full_disk_keeps_the_one_before(saved):
    before = tensors(saved)
    with files_of_at_most(2000), pytest.raises(UserError, match="is the disk full"):
        checkpoint.save(saved, IDENTITY, STATE)
    assert checkpoint.load(saved, IDENTITY)[0] is not None
    assert tensors(saved) == before


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
    (path,) = tensors(saved)
    path.write_bytes(pickle.dumps(Bomb()))
    state, refused = checkpoint.load(saved, IDENTITY)
    assert state is None
    assert "cannot be read" in refused


def test_files_are_as_readable_as_the_user_wants(saved):
    beside = saved.with_name("beside")
    beside.touch()
    modes = {path.stat().st_mode for path in saved.parent.iterdir()}
    assert modes == {beside.stat().st_mode}


def test_what_a_killed_writer_left_is_cleared(saved):
    leftover = saved.with_name(".latest.0123abcd.tmp.json")
    leftover.write_bytes(b"half")
    assert checkpoint.load(saved, IDENTITY)[1] == ""
    assert not leftover.exists()
    leftover.write_bytes(b"half")
    checkpoint.remove(saved)
    assert not saved.parent.exists()
    checkpoint.remove(saved)


def test_nothing_of_the_users_own_is_removed(saved):
    mine = saved.with_name("mine.safetensors")
    mine.write_bytes(b"")
    checkpoint.save(saved, IDENTITY, STATE)
    checkpoint.remove(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["mine.safetensors"]


def test_an_index_holds_numbers_to_the_last_digit(tmp_path):
    path = tmp_path / "latest.json"
    checkpoint.save(path, IDENTITY, {"seconds": 0.1 + 0.2, "data": {"order": [2**62, 3]}})
    state, _ = checkpoint.load(path, IDENTITY)
    assert state == {"seconds": 0.1 + 0.2, "data": {"order": [2**62, 3]}}
    assert seal.is_kept(path.read_bytes())
    assert json.loads(path.read_text())["identity"] == IDENTITY
