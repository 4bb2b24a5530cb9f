"""A study that names several corpora: its grid on each of them, and what keeps them apart."""

import json

import pytest

from moelaws.grids.sweep import expand_study
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from moelaws.spec.study import Study
from moelaws.tables.simulate import design
from moelaws.workflow.jobs import Jobs
from planned_study import STUDY

GRID = {
    "settings": {
        "context": 16, "vocab_size": 300, "n_layers": 1, "n_heads": 1, "d_model": 8, "batch": 2,
        "n_experts": 4, "top_k": 2, "d_expert": 8, "lr": 0.01, "evaluation_sequences": 1,
    },
    "sweeps": [
        {"name": "both", "axes": {"steps": [10, 20]}},
        {"name": "one", "corpora": "first", "axes": {"steps": [20, 40]}},
    ],
}  # fmt: skip


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """Three files of text in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name} text of its own. " * 2000)
    return tmp_path


def study_of(corpora=(), **more):
    data = {"study": "texts", "title": "t", "grids": {"demo": GRID}, **more}
    return parse(Study, {**data, "corpora": corpora} if corpora else data, "texts.yaml")


def ids(study, corpus="a.txt"):
    return {run.run_id: run for run in expand_study(study, Project(corpus=corpus)).runs}


def test_each_text_has_the_runs_that_it_has_alone_and_the_first_has_more(texts):
    """A run's identity holds its text, so corpora side by side train what each trains alone."""
    both = ids(study_of(["b.txt", "c.txt"]))
    b, c = ids(study_of(), "b.txt"), ids(study_of(), "c.txt")
    assert [len(b), len(both)] == [3, 5]
    assert set(both) == set(b) | {key for key, run in c.items() if "both" in run.sweeps}
    assert [run.corpus for run in both.values()] == ["b.txt"] * 3 + ["c.txt"] * 2
    assert {run.corpus for run in b.values()} == {"text"}
    shared = [run for run in both.values() if run.config.steps == 20]
    assert [run.sweeps for run in shared] == [("both", "one"), ("both",)]
    table = design(expand_study(study_of(["b.txt", "c.txt"]), Project()))
    assert table.groupby("corpus").size().to_dict() == {"b.txt": 3, "c.txt": 2}


def test_texts_go_by_their_own_words_or_by_names(texts):
    hub = {"dataset": "owner/stories", "commit": "0" * 40}
    assert list(study_of(["stdlib", "b.txt", hub]).corpora) == ["stdlib", "b.txt", "owner/stories"]
    with pytest.raises(UserError, match=r"corpora: there is none; name a text, or leave out"):
        parse(Study, {**STUDY, "corpora": []}, "texts.yaml")
    with pytest.raises(UserError, match=r"corpora.*give each a name of its own"):
        study_of([hub, {**hub, "subset": "x"}])
    with pytest.raises(UserError, match=r"corpora: again: it has the text of b\.txt"):
        ids(study_of({"b.txt": "b.txt", "again": "b.txt"}))
    with pytest.raises(UserError, match=r"texts\.yaml: corpora\.none: .*none\.txt matches no file"):
        ids(study_of({"none": "none.txt"}))


def test_a_fit_that_would_mix_texts_is_refused(texts):
    def fitted(*corpora, **fit):
        entry = {"name": "loss", "law": "chinchilla", "mapping": {"N": "N_active"}, **fit}
        return study_of(list(corpora), fits=[entry])

    fitted("b.txt", sweep="both", split_by="N_total")
    fitted("b.txt", "c.txt", sweep="both", split_by="corpus")
    fitted("b.txt", "c.txt", sweep="one")
    with pytest.raises(UserError, match="loss: it would fit one law to the losses on several"):
        fitted("b.txt", "c.txt", sweep="both", split_by="N_total")


def test_the_workflow_prepares_each_text_by_its_own_words(texts):
    hub = {"dataset": "owner/stories", "commit": "0" * 40, "bytes": 10**9}
    study = study_of({"b": "b.txt", "stories": hub})
    sweep = expand_study(study, Project())
    jobs = Jobs(Project(), {"texts": study}, {"texts": sweep}, None)
    options = {run.corpus: jobs.corpus_option(run.config.corpus.corpus_id) for run in sweep.runs}
    assert options["b"] == """--set 'corpus="b.txt"'"""
    data = json.loads(options["stories"].removeprefix("--set 'corpus=").removesuffix("'"))
    assert parse(Project, {"corpus": data}, "x").corpus == study.corpora["stories"]
