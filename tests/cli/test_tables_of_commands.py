"""Tables of commands: as wide as a pipe likes, and as narrow as a terminal needs."""

from moelaws.cli.answers import table_text


def test_a_table_folds_its_texts_at_the_terminal_and_a_pipe_has_them_whole(monkeypatch):
    rows = [("allocation.elasticity", "a title of so many words that it is long", 1.5)] * 2
    monkeypatch.delenv("COLUMNS", raising=False)
    assert max(map(len, table_text(("law", "title", "x"), rows).splitlines())) > 60
    monkeypatch.setenv("COLUMNS", "45")
    text = table_text(("law", "title", "x"), rows)
    assert max(map(len, text.splitlines())) <= 45
    assert text.count("allocation.elasticity ") == 2
    words = [word for line in text.splitlines()[1:] for word in line.split()]
    assert words.count("long") == words.count("1.5") == 2
    cut = table_text(("law", "title", "x"), rows, cut=True).splitlines()
    assert [len(line) for line in cut] == [45] * 3
