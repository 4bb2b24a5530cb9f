"""Commands that a launcher runs: as they would run by themselves, also when they are killed."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from moelaws.launcher.client import ANALYSIS, FOLDER, TRAINING
from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig
from random_corpus import VOCABULARY, random_corpus
from waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="launchers need Linux")


def environment(**more):
    return {**os.environ, "OMP_NUM_THREADS": "1", **{key: str(v) for key, v in more.items()}}


def begin(address, *modules, function="moelaws.cli:main", path=""):
    """Starts a launcher; returns its process once it serves, or has ended."""
    address.parent.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "moelaws.launcher.server", address, function, *modules],
        stdin=subprocess.PIPE,
        env=environment(PYTHONPATH=f"{path}:{os.environ.get('PYTHONPATH', '')}"),
    )
    wait_for(lambda: process.poll() is not None or address.exists())
    return process


def moelaws(folder, *words, env=(), **options):
    """Starts a command, in a launcher where there is one in ``folder``."""
    return subprocess.Popen(
        [sys.executable, "-m", "moelaws", *map(str, words)],
        env=environment(**{FOLDER: folder}, **dict(env)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The folder of a launcher of each kind."""
    folder = tmp_path_factory.mktemp("some") / "launchers"
    launchers = [begin(folder / TRAINING, "torch"), begin(folder / ANALYSIS, "click")]
    yield folder
    for launcher in launchers:
        launcher.communicate(timeout=60)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("laws", "chinchilla", "--json"), 0),
        (("laws", "chinchila"), 2),
        (("fit", "chinchilla", "--table", "none.csv"), 2),
        (("nonsense",), 2),
    ],
)
def test_a_command_prints_and_ends_as_by_itself(shared, tmp_path, words, code):
    ends = []
    for folder in (shared, ""):
        command = moelaws(folder, *words, cwd=tmp_path)
        ends.append((*command.communicate(), command.returncode))
    assert ends[0] == ends[1]
    assert ends[0][2] == code


def test_from_a_folder_that_is_gone_a_command_ends_as_by_itself(shared, tmp_path):
    ends = []
    for folder in (shared, ""):
        (gone := tmp_path / "gone").mkdir()
        code = f"import os; os.rmdir({str(gone)!r}); from moelaws.__main__ import main; main()"
        command = subprocess.run(
            [sys.executable, "-c", code, "grid", "sparsity"], cwd=gone, capture_output=True,
            env=environment(**{FOLDER: folder}), text=True,
        )  # fmt: skip
        ends.append((command.returncode, command.stdout, command.stderr))
    assert ends[0] == ends[1]
    assert ends[0][0] == 2


SETTINGS = """
import json, os, sys
def main():
    print(json.dumps([sys.argv[1:], os.getcwd(), os.environ.get("NEW"), os.umask(0),
                      sys.stdin.read(), os.getppid(), os.environ.get("MOELAWS_LAUNCHERS")]))
    sys.stderr.write("to the error stream")
    sys.exit(7)
"""


def test_it_has_the_callers_arguments_folder_environment_umask_and_streams(tmp_path):
    (tmp_path / "settings.py").write_text(SETTINGS)
    folder, elsewhere = tmp_path / "launchers", tmp_path / "elsewhere"
    elsewhere.mkdir()
    launcher = begin(folder / ANALYSIS, function="settings:main", path=tmp_path)
    command = moelaws(folder, "some", "words é", env={"NEW": "a\nline"}, cwd=elsewhere, umask=0o027)
    out, err = command.communicate("an input")
    known = [["some", "words é"], str(elsewhere), "a\nline", 0o027, "an input"]
    assert json.loads(out) == [*known, launcher.pid, None]
    assert (err, command.returncode) == ("to the error stream", 7)
    launcher.communicate()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of hours, and the folder of its text."""
    corpus, folder = random_corpus(tmp_path_factory.mktemp("corpus"))
    data = {
        "model": {
            "n_layers": 1, "d_model": 8, "n_heads": 1, "n_kv": 1, "context": 16,
            "vocab_size": VOCABULARY, "ffn": {"kind": "dense", "d_ffn": 8},
        },
        "corpus": corpus.model_dump(),
        "steps": 10_000_000, "batch": 2, "max_epochs": 1_000_000, "balance_group": 1,
        "optimizer": {"lr": 1e-2}, "evaluation": {"sequences": 8},
    }  # fmt: skip
    return parse(RunConfig, data, "test"), folder


@pytest.fixture
def training(tmp_path, run):
    """Trains the run in the launcher of a folder: the command, the trainer and its checkpoint."""
    config, corpus = run
    (tmp_path / "config.json").write_text(config.canonical_json())
    results, commands = Results(tmp_path / "results"), []

    def begun(folder):
        words = ("train", tmp_path / "config.json", "--results", results.root, "--corpus", corpus)
        commands.append(command := moelaws(folder, *words))
        history = results.history_so_far(config.run_id)
        wait_for(lambda: history.exists() or command.poll() is not None)
        lock = json.loads((results.run(config.run_id) / "lock").read_text())
        trainer = psutil.Process(lock["pid"])
        assert trainer.ppid() != os.getpid()
        assert "moelaws.launcher.server" in trainer.parent().cmdline()
        return command, trainer, results.checkpoint(config.run_id)

    yield begun
    for command in commands:
        command.kill()
        command.communicate()


def is_gone(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_trainer(training, shared, heard, number):
    command, trainer, checkpoint = training(shared)
    command.send_signal(number)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 128 + number
    assert "checkpoint written" in err
    assert checkpoint.exists()
    assert is_gone(trainer)


@pytest.mark.parametrize("victim", ["command", "trainer"])
def test_of_a_kill_nothing_is_left_at_work(training, shared, victim):
    command, trainer, _ = training(shared)
    {"command": command, "trainer": trainer}[victim].kill()
    command.communicate(timeout=60)
    assert command.returncode == -signal.SIGKILL
    wait_for(lambda: is_gone(trainer))


def test_a_stopped_command_goes_on_later(training, shared):
    command, trainer, _ = training(shared)
    command.send_signal(signal.SIGTSTP)
    wait_for(lambda: trainer.status() == psutil.STATUS_STOPPED)
    command.send_signal(signal.SIGCONT)
    wait_for(lambda: trainer.status() != psutil.STATUS_STOPPED)
    assert command.poll() is None


def test_a_launcher_ends_after_its_last_command(training, tmp_path):
    launcher = begin(tmp_path / "launchers" / TRAINING, "torch")
    command, trainer, _ = training(tmp_path / "launchers")
    launcher.stdin.close()
    wait_for(lambda: not (tmp_path / "launchers").exists())
    assert launcher.poll() is None
    assert not is_gone(trainer)
    command.terminate()
    assert command.wait(60) == 128 + signal.SIGTERM
    assert launcher.wait(60) == 0


def test_a_launcher_that_is_killed_takes_its_commands_along(training, tmp_path):
    launcher = begin(tmp_path / "launchers" / TRAINING, "torch")
    command, trainer, _ = training(tmp_path / "launchers")
    launcher.kill()
    _, err = command.communicate(timeout=60)
    assert command.returncode == -signal.SIGKILL
    assert "the process that started this command was killed" in err
    wait_for(lambda: is_gone(trainer))
    launcher.communicate()
    # The address is still there, and nobody listens: the next command starts by itself.
    refused = moelaws(tmp_path / "launchers", "train", "none.json")
    assert "none.json: no such file" in refused.communicate()[1]


THREAD = """
import threading, time
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
"""


def test_where_a_fork_is_not_safe_commands_start_themselves(tmp_path):
    (tmp_path / "a_thread.py").write_text(THREAD)
    launcher = begin(tmp_path / "launchers" / ANALYSIS, "a_thread", path=tmp_path)
    launcher.communicate()
    assert launcher.returncode == 0
    command = moelaws(tmp_path / "launchers", "laws", "chinchilla")
    assert command.communicate()[0].startswith("chinchilla: ")
    assert command.returncode == 0
