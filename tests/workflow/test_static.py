"""What the default profile may say, and that both files of the environment say the same."""

import yaml

from repository import REPOSITORY


def test_default_profile_leaves_the_choice_of_machine_to_others():
    """It is always in force and overrides `--profile slurm`, so it may not say where jobs run."""
    profile = yaml.safe_load((REPOSITORY / "profiles/default/config.yaml").read_text())
    taken = {"executor", "jobs", "cores", "local-cores", "retries", "keep-going", "latency-wait"}
    assert not taken & set(profile)
    assert not [key for key in profile if "resources" in key or "slurm" in key]
    # No code among them: one more space in a rule would train every model again.
    assert sorted(profile["rerun-triggers"]) == ["input", "mtime", "params"]


def test_the_conda_environment_is_the_lock_file():
    lock = (REPOSITORY / "envs/cpu.lock").read_text().splitlines()
    pinned = [line for line in lock if line and not line.startswith("#")]
    environment = yaml.safe_load((REPOSITORY / "envs/cpu.yaml").read_text())
    assert environment["dependencies"][-1] == {"pip": pinned}
    assert all("==" in line for line in pinned)
