"""A checkpoint that cannot be trusted is refused with its reason."""

import json
import pickle

import pytest
import torch

from full_disk import files_of_at_most
from moelaws.files import seal
from moelaws.spec.errors import UserError
from moelaws.training import checkpoint

IDENTITY = {"run": "abc", "data": "123"}
STATE = {"weights": torch.arange(1000.0), "step": 2**62, "nested": {"x": [1, 0.1 + 0.2, "text"]}}


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
    assert (state["step"], state["nested"]) == (STATE["step"], STATE["nested"])  # to the last digit
    assert seal.inspect(saved)[0] == "whole"
    assert json.loads(saved.read_text())["identity"] == IDENTITY


class Bomb:
    def __reduce__(self):
        return (open, ("/dev/null",))


def flipped(content):
    """One bit is another one: it would be taken for a weight."""
    place = content.find(STATE["weights"].numpy().tobytes()) + 400
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    ("file", "change", "reason"),
    [
        *(
            (file, lambda content, length=length: content[: int(length * len(content))], "be read")
            for file in ("index", "tensors")
            for length in (0.0, 0.3, 0.99)
        ),
        ("tensors", flipped, "damaged"),
        ("tensors", lambda content: pickle.dumps(Bomb()), "cannot be read"),
        ("tensors", None, "cannot be read"),
    ],
)
def test_a_damaged_one_is_refused(saved, file, change, reason):
    path = saved if file == "index" else tensors(saved)[0]
    content = path.read_bytes()
    path.unlink()
    if change:
        path.write_bytes(change(content))
    state, refused = checkpoint.load(saved, IDENTITY)
    assert state is None
    assert reason in refused


def test_one_of_another_run_or_other_data_or_version_is_refused(saved, monkeypatch):
    for key in ("run", "data"):
        state, refused = checkpoint.load(saved, {**IDENTITY, key: "other"})
        assert state is None
        assert f"of another {key}" in refused
    monkeypatch.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
    assert checkpoint.load(saved, IDENTITY) == (None, f"{saved}: of another version")


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
