"""How long a fit takes is said before it begins, and what would not end is refused."""

import os
import re

import pytest
from click.testing import CliRunner
from fitting_case import fitted

from moelaws import laws
from moelaws.cli import cli
from moelaws.fitting.cores import using_cores
from moelaws.spec.errors import UserError

LAW = laws.fittable("chinchilla")


@pytest.fixture(scope="module")
def large(dense):
    return dense(sizes=1000, tokens=1000)


def test_a_fit_of_a_million_rows_says_its_hours_beforehand(large, tmp_path):
    large.to_parquet(tmp_path / "runs.parquet")
    arguments = ["fit", str(tmp_path / "runs.parquet"), "--law", "chinchilla", "--max-hours", "0.1"]
    result = CliRunner().invoke(cli, arguments)
    assert isinstance(result.exception, UserError)
    assert re.search(
        r"fitting chinchilla to 1,000,000 rows takes about [\d.]+ (min|h) on this machine; "
        r"max_hours allows 0.1 h. Choose a lower bootstrap \(now 200 refits\) or sample \(now "
        r"4,500 starts\), or fewer rows, or a higher max_hours",
        str(result.exception),
    )


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processor can be chosen here")
def test_cores_that_this_process_may_not_use_make_no_fit_shorter(large):
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        # On 256 cores it would be hours.
        with using_cores(256), pytest.raises(UserError, match=r"takes about [\d,]+ days on"):
            fitted(LAW, large, bootstrap=100_000, max_hours=0.01)
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_long_fit_is_announced_and_goes_on(dense, capfd, monkeypatch):
    table = dense(sizes=10, tokens=10)
    few = {"bootstrap": 2, "protocol": {"sample": 5}}
    fitted(LAW, table, **few)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr("moelaws.fitting.fit.MEASURED_ABOVE", 0)
    monkeypatch.setattr("moelaws.fitting.fit.SAID_ABOVE", 0)
    assert fitted(LAW, table, **few).parts[0].n == 100
    said = capfd.readouterr().err
    assert said.startswith("moelaws: fitting chinchilla to 100 rows takes about ")
    assert "now 2 refits) or sample (now 5 starts)" in said
