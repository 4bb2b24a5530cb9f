"""explore.html in a headless Chromium, by Playwright: what a reader does with it, and what must not
happen to them.

    pip install --no-deps --target OVERLAY -r envs/browser.txt     (and a Chromium of the system)
    PYTHONPATH=OVERLAY pytest tests/explore/test_page.py -m slow

With MOELAWS_BROWSER=required a test that would be skipped for lack of either fails.
"""

import re
import time

import numpy as np
import pytest
from page_data import IMAGE, NASTY, law_value, page_data

from moelaws.explore.page import render
from moelaws.spec.rows import select

pytestmark = pytest.mark.slow
SECTIONS = [
    *("answers", "isoflop", "runs", "curves", "scatter", "parallel", "laws", "studies", "words"),
]


def show(page, place):
    """Brings a section, or an element by its id, into view; returns it when its plots are drawn."""
    page.locator(f"#{place}").evaluate("element => element.scrollIntoView()")
    for box in page.locator(f"#{place} .plot, #{place}.plot").all():
        box.locator(".main-svg").first.wait_for()
    return page.locator(f"#{place}")


def until(ask, answer=True):
    """Waits for a value; Playwright's own waiting evaluates strings, which the page forbids."""
    end = time.monotonic() + 20
    while (got := ask()) != answer and time.monotonic() < end:
        time.sleep(0.05)
    assert got == answer


def drawn_runs(page):
    """Runs in the scatter plot."""
    traces = page.locator("#scatter-plot").evaluate("box => box.data.map(one => one.customdata)")
    return sorted(row for points in traces for rows in points for row in rows)


def curves_of(page, mode=""):
    """Traces of the training curves, all or those of one mode."""
    traces = page.locator("#curves-plot").evaluate(
        "box => box.data.map(({mode, legendgroup, x, y}) => ({mode, legendgroup, x, y}))"
    )
    return [trace for trace in traces if mode in trace["mode"]]


def picked_rows(page):
    rows = page.locator("#runs-table tr.picked")
    return sorted(rows.evaluate_all("all => all.map(one => Number(one.dataset.row))"))


def count(page):
    return page.locator("#count").inner_text()


def test_it_opens_and_draws_every_section_without_a_complaint(visit, file):
    page = visit(file)
    for name in SECTIONS:
        section = show(page, name)
        assert section.locator("h2").inner_text()
        assert "[object" not in section.text_content()
    banner = page.locator("#source").inner_text()
    assert banner.startswith("Mixed data: some losses on this page were simulated; ")
    assert "imported" not in banner
    assert page.evaluate("document.querySelectorAll('.plot .main-svg').length") > 0
    links = page.locator("a[href]").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert {"figures/one/F1.csv", "figures/one/F1.pdf", "report.html", "claims.md"} <= set(links)
    assert page.locator("#words details[open] table").count() == 1
    assert "✓ supported" in page.locator("#words").inner_text()
    assert not [link for link in links if re.match(r"\w+:|//", link)]


# 36 of the 60 runs are trained and completed.
TRAINED = "36 models of 200k to 3.2M parameters were trained on 1M to 64M tokens"
JUDGED = "These runs support 1 of 3 claims and contradict 1"
SENTENCES = {
    True: [
        f"{TRAINED}, with budgets of 1e12 to 1e13 FLOPs.",
        "At 1e13 FLOPs the fitted optimum lies near 240k parameters and sparsity 0.5: 1.900 nats "
        "a token (90 % interval 1.400 to 2.100); that of dense models is at most 2.000 (1.900 to "
        "2.100).",
    ],
    False: [
        f"{TRAINED}.",
        "No optimum was fitted: the lowest loss measured in 36 runs is 1.775 nats a token, of a "
        "model of 3.2M parameters, 1.6M of them active (sparsity 0.5); that of 8 dense runs is "
        "2.091.",
    ],
}


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("swept", [True, False])
def test_the_first_screen_has_the_sentences_and_a_plot(visit, tmp_path, width, swept):
    """Without a sweep of budgets the plot is that of two columns."""
    data = page_data()
    data["isoflop"] *= swept
    data["studies"].append(data["studies"][0] | {"key": "two", "source": "imported"})
    path = tmp_path / "explore.html"
    path.write_text(render(data), encoding="utf-8")
    page = visit(path, width=width)
    first = page.locator("#isoflop-plot" if swept else "#scatter-plot")
    first.locator(".main-svg").first.wait_for()  # it is drawn without scrolling
    sentences = page.locator("#answers p.answer")
    of_others = JUDGED.replace("These", "published")
    assert sentences.all_inner_texts() == [*SENTENCES[swept], f"{JUDGED}; {of_others}."]
    tops = [one.bounding_box()["y"] for one in [*sentences.all(), first]]
    assert tops == sorted(tops)
    assert tops[-1] < 600
    order = page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
    moved = [name for name in SECTIONS if name != "isoflop"]
    moved.insert(1, moved.pop(moved.index("scatter")))
    assert order == (SECTIONS if swept else moved)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_training_curves_are_smoothed_as_asked_and_end_at_the_validation_loss(visit, file):
    page = visit(file)
    page.fill("#filter", "run-7")
    show(page, "curves")
    until(lambda: len(curves_of(page)), 3)
    pale, smooth, validation = curves_of(page)
    assert smooth["y"][2] == pytest.approx(sum(pale["y"][:5]) / 5)
    assert smooth["y"][0] == pale["y"][0]
    assert smooth["y"][-1] == pytest.approx(sum(pale["y"][-9:]) / 9)
    run = page_data()["runs"]["columns"]
    loss = next(column for column in run if column["name"] == "L")
    assert validation["y"] == [pytest.approx(loss["values"][7])]
    assert validation["x"] == smooth["x"][-1:]
    page.get_by_label("Smoothing").select_option("none")
    until(lambda: len(curves_of(page)), 2)
    assert curves_of(page)[0]["y"] == pale["y"]


def test_a_filter_narrows_table_and_plots(visit, file):
    page = visit(file)
    show(page, "scatter")
    page.fill("#filter", "S>=0.9 status=completed")
    expected = [i for i in range(60) if i % 4 == 3 and i % 10]
    until(lambda: drawn_runs(page), expected)
    assert page.locator("#runs-table tbody tr").count() == len(expected)
    assert count(page).startswith("15 of 60 runs match")


COLUMNS = page_data()["runs"]["columns"]
NUMBERS = {c["name"]: np.array(c["values"], float) for c in COLUMNS if c["type"] == "number"}
AS_COMMANDS = [
    "N_total > 1M",
    "N_total>=0.1M and N_total < 1.6e6, D<=32.0M",
    "L >= 2.884",  # as 2.88358 is shown
    "N_active = 20K",  # a tenth of 2e5 comes out a bit less
]


@pytest.mark.parametrize(
    ("written", "matching"),
    [
        ("L=missing", 6),
        ("status != diverged S = 0.75", 12),
        (f'"{IMAGE}"', 15),
        ("L!=3", 54),  # a missing loss is not another one
        ("status=completed,diverged", 60),
        ("status=diverged,L=missing&run-50", 1),
        *((written, select(NUMBERS, written).sum()) for written in AS_COMMANDS),
    ],
)
def test_what_filters_match(visit, file, written, matching):
    """Numbers are compared as commands compare them."""
    page = visit(file)
    page.fill("#filter", written)
    assert page.locator("#filter-error").inner_text() == ""
    assert count(page).startswith(f"{matching} of 60 runs match")


def test_runs_picked_in_the_table_stand_out_in_the_plots(visit, file):
    page = visit(file)
    show(page, "scatter")
    for run in (3, 5):
        page.locator(f'#runs-table tr[data-row="{run}"] input').check()
    show(page, "scatter")
    stand_out = (
        "box => box.data.flatMap(one => (one.selectedpoints ?? []).flatMap(i => one.customdata[i]))"
    )
    until(lambda: sorted(page.locator("#scatter-plot").evaluate(stand_out)), [3, 5])
    assert page.locator("#parallel-plot path.rest").count() == 1
    show(page, "curves")
    until(
        lambda: sorted(one["legendgroup"] for one in curves_of(page, "lines")),
        2 * ["d67 E8 1e12 s0 (run-3)"] + 2 * ["d69 E8 1e12 s0 (run-5)"],
    )


@pytest.mark.parametrize("place", ["scatter", "isoflop", "curves"])
def test_runs_that_differ_in_their_seed_alone_are_averaged(visit, file, place):
    """Runs 1 and 2 differ so, and both have a loss and a curve."""
    page = visit(file)
    page.fill("#filter", "run_id=run-1,run-2")
    shown = "box => box.data.flatMap(one => one.mode == 'markers' ? one.y : [])"
    box = page.locator(f"#{place}-plot")
    show(page, place)
    before = box.evaluate(shown)
    page.locator(f"#{place}").get_by_label("mean of seeds").check()
    run = {column["name"]: column for column in page_data()["runs"]["columns"]}
    pair = np.array(run["L"]["values"][1:3])
    until(lambda: len(box.evaluate(shown)) < len(before))
    assert pytest.approx(pair.mean()) in box.evaluate(shown)
    assert set(pair).isdisjoint(box.evaluate(shown))


def test_two_runs_stand_side_by_side_where_their_configurations_differ(visit, file):
    page = visit(file)
    compare = page.get_by_role("button", name="Compare two selected runs")
    assert compare.is_disabled()
    for run in (1, 4):
        page.locator(f'#runs-table tr[data-row="{run}"] input').check()
    compare.click()
    rows = page.locator("#enlarged tbody tr").all_inner_texts()
    assert [row.split("\t") for row in rows[1:]] == [
        ["model.d_model", "65", "67"],
        ["seed", "1", "0"],
    ]


def test_a_box_in_the_scatter_plot_picks_runs_in_the_table(visit, file):
    page = visit(file)
    show(page, "scatter")
    page.locator("#scatter").get_by_label("Across").select_option("N_total")
    title = "box => box.layout.xaxis.title.text"
    until(lambda: "N_total" in page.locator("#scatter-plot").evaluate(title))
    area = page.locator("#scatter-plot .nsewdrag").bounding_box()
    page.mouse.move(area["x"] + 5, area["y"] + 5)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.5, area["y"] + area["height"] - 5, steps=5)
    page.mouse.up()
    until(lambda: len(picked_rows(page)) > 0)
    small = [i for i in range(60) if i % 6 < 3 and i % 10]  # the smaller half of the sizes
    assert picked_rows(page) == [i for i in small if i in picked_rows(page)]
    page.get_by_label("Show selected runs only").check()
    until(lambda: picked_rows(page), small)
    show(page, "scatter")
    until(lambda: drawn_runs(page), small)


def test_a_click_shows_configuration_curve_and_load(visit, file):
    page = visit(file)
    page.locator('#runs-table tr[data-row="7"] td').nth(1).click()
    detail = page.locator("#detail")
    detail.locator(".main-svg").nth(4).wait_for(state="attached")
    assert detail.locator("h2").inner_text() == "d71 E8 1e12 s0"
    assert "run run-7, completed" in detail.inner_text()
    assert "model.d_model\t71" in detail.inner_text()
    assert NASTY[2] in detail.inner_text()
    until(lambda: "run=run-7" in page.evaluate("location.hash"))
    first = "all => all.map(one => [one.data[0].type, one.data[0].z])"
    traces = detail.locator(".plot").evaluate_all(first)
    assert traces[0][0] == "scatter"
    assert traces[1][1][0] == pytest.approx([0.4, 0.8, 1.2, 1.6], rel=1e-6)


def test_the_keyboard_alone_finds_opens_picks_and_sorts(visit, file):
    page = visit(file)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "filter":
            break
    page.keyboard.type("S=0.75")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.row"):
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    row = page.evaluate("document.activeElement.dataset.row")
    assert picked_rows(page) == [int(row)]
    page.keyboard.press("Enter")
    assert page.locator("#detail").is_visible()
    page.keyboard.press("Escape")
    until(lambda: page.locator("#detail").is_visible(), False)
    until(lambda: page.evaluate("document.activeElement.dataset.row"), row)
    page.locator('[data-column="N_total"]').focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    header = page.locator("th", has=page.locator('[data-column="N_total"]'))
    assert header.get_attribute("aria-sort") == "descending"
    assert page.evaluate("document.activeElement.dataset.column") == "N_total"


def test_sliders_move_the_law(visit, file):
    page = visit(file)
    show(page, "laws")
    curve = "box => box.data.find(one => /within/.test(one.name)).y.filter(Number.isFinite)"
    before = page.locator("#law-plot").evaluate(curve)
    page.locator("#slider-D").press("ArrowRight")
    page.locator("#slider-D").press("End")
    words = page.locator("#readout").inner_text()
    N, D, L = (float(re.search(rf"\b{name} = ([\d.e]+)", words)[1]) for name in "NDL")
    assert pytest.approx(law_value(N, D), rel=1e-3) == L
    assert pytest.approx(1.28e8) == D
    assert "This is an extrapolation: D lies outside" in words
    until(lambda: page.locator("#law-plot").evaluate(curve), [])  # all of it is extrapolated
    assert len(before) > 50


def test_markup_is_shown_as_text(visit, file):
    page = visit(file)
    for name in SECTIONS:
        show(page, name)
    page.fill("#filter", "L=missing")  # run 0 is one of these
    page.locator('#runs-table tr[data-row="0"] td').nth(1).click()
    assert page.locator("#detail h2").inner_text() == f"d64 E8 {IMAGE} s0"
    assert f"run {IMAGE}, diverged" in page.locator("#detail").inner_text()
    page.keyboard.press("Escape")
    page.locator("#studies .picture").click()
    assert NASTY[1] in page.locator("#enlarged").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("main script, main b").count() == 0
    for text in NASTY:
        assert text in page.locator("#words").inner_text()
    # Colours by study put the names into Plotly's labels and legend.
    page.fill("#filter", "")
    show(page, "scatter")
    page.locator("#scatter").get_by_label("Up").select_option("study")
    page.locator("#scatter").get_by_label("Colour").select_option("study")
    labels = page.locator("#scatter-plot .ytick")
    until(lambda: IMAGE in " ".join(labels.all_text_contents()))
    assert IMAGE in page.locator("#scatter .legend").inner_text()


def test_a_phone_scrolls_no_wider_than_its_screen(visit, file):
    page = visit(file, width=390)
    for name in SECTIONS:
        show(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    loss = page.locator('#runs-table [data-column="L"]').bounding_box()
    assert loss["x"] + loss["width"] <= 390
    page.locator('#runs-table tr[data-row="7"] td').nth(1).click()
    assert page.evaluate("document.getElementById('detail').scrollWidth") <= 390


def test_dark_colours_follow_the_system_and_the_button(visit, file):
    page = visit(file, scheme="dark")
    show(page, "scatter")
    colors = """box => [
        getComputedStyle(document.body).backgroundColor,
        box.layout.paper_bgcolor, box.layout.font.color,
    ]"""
    dark = page.locator("#scatter-plot").evaluate(colors)
    page.get_by_role("button", name="Light colours").click()
    until(lambda: page.locator("#scatter-plot").evaluate(colors)[1] != dark[1])
    light = page.locator("#scatter-plot").evaluate(colors)
    assert all(before != after for before, after in zip(dark, light, strict=True))
    page.emulate_media(color_scheme="light")
    assert page.locator("#scatter-plot").evaluate(colors) == light
