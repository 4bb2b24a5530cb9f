// Training curves of the selected runs over steps, tokens, FLOPs or wall time.

const MOST_CURVES = 35;
const UNSELECTED_CURVES = 6;

/** Each way to measure how far training is: its axis title and the values of a run's curve. */
const PROGRESS = {
  step: { words: "steps", title: "optimizer steps", of: (data, row, curve) => Array.from(curve.step) },
  tokens: { words: "tokens", title: "training tokens", of: (data, row, curve) => scaled(curve.step, data.column("batch_tokens")?.number(row)) },
  flops: {
    words: "FLOPs", title: "training FLOPs (6 N D)",
    of: (data, row, curve) => scaled(curve.step, data.column("C_6N")?.number(row) / data.column("steps")?.number(row)),
  },
  seconds: { words: "wall time", title: "wall time since the start (s)", of: (data, row, curve) => Array.from(curve.seconds) },
};

function scaled(steps, factor) {
  return Array.from(steps, (step) => step * (factor ?? NaN));
}

/** Returns the sets of rows whose mean curves are drawn, by default a row each, and a sentence that says why these. */
function curveSets(data, averaged) {
  const has = (row) => data.curves[row].step.length > 0;
  const setsOf = (rows) => seedGroups(data, rows, averaged).map((set) => set.map((i) => rows[i]));
  const picked = [...state.selected].filter((row) => state.rows.includes(row));
  if (picked.length) {
    const all = setsOf(picked.filter(has));
    const sets = all.slice(0, MOST_CURVES);
    const without = picked.filter((row) => !has(row)).length;
    const left = all.slice(MOST_CURVES).flat().length;
    return { sets, words: `Curves of ${plural(sets.flat().length, "selected run")}.${without ? ` ${plural(without, "selected run")} without a curve at hand.` : ""}${left ? ` The first ${MOST_CURVES} are drawn; ${left} more are left out.` : ""}` };
  }
  const loss = data.column("L");
  const order = (set) => (loss && !set.some(loss.missing) ? place(loss, set) : Infinity);
  const sets = setsOf(state.rows.filter(has)).sort((a, b) => order(a) - order(b)).slice(0, UNSELECTED_CURVES);
  return { sets, words: sets.length ? `No run is selected: these are the ${sets.length} of lowest validation loss among those that match the filter. Select runs to see theirs.` : "No run that matches the filter has a training curve at hand." };
}

/** Means over each point and up to `reach` neighbours on either side: fewer at the start, where a loss falls fast. */
function smoothed(values, reach) {
  return Array.from(values, (_, i) => {
    const near = Math.min(reach, i);
    return mean(values.slice(i - near, i + near + 1)); // it ends with the curve
  });
}

/** The mean curve of runs that differ in their seed alone, over those that are as far as the first. */
function meanCurve(data, rows) {
  const [first, ...others] = rows.map((row) => data.curves[row]);
  const alike = others.filter(({ step }) => step.length === first.step.length && step.at(-1) === first.step.at(-1));
  return { ...first, loss: first.loss.map((loss, i) => mean([loss, ...alike.map((other) => other.loss[i])])) };
}

/** The training loss of a run, or the mean of several, smoothed over a pale line of what was measured, and the validation loss. */
function curveTraces(data, rows, style, by, reach) {
  const [row] = rows;
  const curve = meanCurve(data, rows);
  const name = setName(data, rows);
  const x = PROGRESS[by].of(data, row, curve);
  const group = { legendgroup: name, customdata: Array(curve.step.length).fill(row), hoverinfo: "text" };
  const line = { type: "scatter", mode: "lines", x, ...group };
  const words = (kind, loss, at) => `${runWords(data, rows, ["N_total", "S", "L"])}<br>${kind} ${formatNumber(loss)} nats/token at step ${formatNumber(curve.step[at])}`;
  const means = smoothed(curve.loss, reach);
  const traces = [{ ...line, name, y: means, line: { color: style.color, dash: style.dash, width: 1.8 }, text: means.map((loss, at) => words(reach ? "smoothed training loss" : "training loss", loss, at)) }];
  if (reach) traces.unshift({ ...line, y: Array.from(curve.loss), hoverinfo: "skip", showlegend: false, opacity: 0.25, line: { color: style.color, width: 1 } });
  const loss = data.column("L");
  if (loss && !loss.missing(row) && x.length) {
    traces.push({ type: "scatter", mode: "markers", ...group, x: [x.at(-1)], y: [place(loss, rows)], showlegend: false, text: [words("validation loss", place(loss, rows), x.length - 1)], marker: { color: style.color, symbol: "diamond", size: 10, line: { color: css("paper"), width: 1 } } });
  }
  return traces;
}

function curvesSection(data) {
  const pick = { by: "step", logX: false, logY: false, seeds: false, reach: 8 };
  const words = h("p", { role: "status" });
  const describe = () => {
    const { sets } = curveSets(data, pick.seeds);
    const progress = PROGRESS[pick.by];
    return {
      data: sets.flatMap((set, i) => curveTraces(data, set, seriesStyle(i), pick.by, Number(pick.reach))),
      layout: {
        xaxis: { title: progress.title, type: pick.logX ? "log" : "linear" },
        yaxis: { title: "loss (nats/token)", type: pick.logY ? "log" : "linear" },
      },
      label: `Training loss of ${plural(sets.flat().length, "run")} over ${progress.words}.`,
    };
  };
  const drawn = plot(describe, { plotly_click: (event) => change({ chosen: event.points[0].customdata }) });
  drawn.box.id = "curves-plot";
  watch(["rows", "selected"], () => { words.textContent = curveSets(data, pick.seeds).words; });
  watch(["rows", "selected", "theme"], drawn.update);
  const set = (key) => (value) => { pick[key] = value; drawn.update(); };
  return section("curves", "Training curves", words,
    h("div", { class: "bar" },
      choice("Over", Object.entries(PROGRESS).map(([key, { words: name }]) => [key, name]), pick.by, set("by")),
      tick("log across", false, set("logX")), tick("log up", false, set("logY")), tick("mean of seeds", false, set("seeds")),
      choice("Smoothing", [[0, "none"], [2, "means of 5 points"], [8, "means of 17 points"]], pick.reach, set("reach"))),
    drawn.element,
    h("p", { class: "hint" }, "Lines are training losses, pale where they were measured and strong where they are smoothed. A diamond is the validation loss at the end. A click on a curve opens its run."));
}
