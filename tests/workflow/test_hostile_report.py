"""Snakemake's report of a study whose captions are directives, HTML and the end of a script."""

import pytest

CAPTIONS = (
    ".. include:: {secret}",
    ".. raw:: html\n   :file: {secret}",
    ".. raw:: html\n\n   <img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script><!-- ",
    "`a link <javascript:alert(3)>`_ and {{{{ snakemake.config }}}}",
)


@pytest.mark.slow
def test_captions_are_text_in_the_report(moved):
    secret = moved.root / "secret.txt"
    secret.write_text("what only the user may read")
    study = moved.study()
    entries = [*study["figures"], *study["tables"]]
    for entry, caption in zip(entries, CAPTIONS, strict=False):
        entry["caption"] = caption.format(secret=secret)
    moved.write_study(study)
    moved.snakemake("--report", "report.html")
    report = (moved.root / "report.html").read_text()
    assert f".. include:: {secret}" in report
    assert secret.read_text() not in report
    assert "&lt; img src=x" in report
    assert "<img src=x" not in report
    assert "<script>alert(2)" not in report
    assert "javascript:alert(3)\\" not in report  # as the address of a link
