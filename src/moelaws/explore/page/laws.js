// A fitted law as a curve over one variable, the others by sliders, with the runs near by.

const NEAR = 0.12; // of a slider's length: the width of the bell by which points fade
const CURVE_POINTS = 161;

function variableWords({ name, description }) {
  return description && description.length <= 60 ? `${name}: ${description}` : name;
}

function variableTitle(variable) {
  return variable.unit && variable.unit !== "1" ? `${isNarrow() ? variable.name : variableWords(variable)} (${variable.unit})` : variableWords(variable);
}

/** An axis for a variable: itself, its logarithm, or its grid's index where the steps are uneven. */
function lawAxis(variable) {
  if (!isUneven(variable)) return { coordinate: (value) => value, look: { title: plain(variableTitle(variable)), type: variable.log ? "log" : "linear" } };
  const every = Math.max(1, Math.ceil(variable.grid.length / 7));
  const ticks = variable.grid.map((_, i) => i).filter((i) => i % every === 0);
  return {
    coordinate: (value) => gridIndex(variable, value),
    look: { title: plain(variableTitle(variable)), type: "linear", tickvals: ticks, ticktext: ticks.map((i) => formatNumber(Number(variable.grid[i].toPrecision(3)))) },
  };
}

function curvePoints(law, indices, d) {
  const variable = law.variables[d];
  const others = law.variables.some((other, i) => i !== d && isOutside(other, gridValue(other, indices[i])));
  return Array.from({ length: CURVE_POINTS }, (_, i) => {
    const index = ((variable.grid.length - 1) * i) / (CURVE_POINTS - 1);
    const x = gridValue(variable, index);
    return { x, outside: others || isOutside(variable, x), ...lookUpAll(law, Object.assign([...indices], { [d]: index })) };
  });
}

/** Limits of the response from the curve in the fitted range and the runs: an interval may leave them. */
function lawRange(law, points) {
  const inside = points.filter((point) => !point.outside);
  const values = [...(inside.length ? inside : points).map((point) => point.mean), ...law.points.L].filter((value) => Number.isFinite(value) && value !== null && (!law.response.log || value > 0));
  const scale = law.response.log ? Math.log10 : (value) => value;
  const low = scale(values.reduce((a, b) => Math.min(a, b)));
  const high = scale(values.reduce((a, b) => Math.max(a, b)));
  const margin = 0.06 * (high - low || 0.1);
  return [low - margin, high + margin];
}

function lawTraces(law, points, d, axis) {
  const { color } = seriesStyle(0);
  const x = points.map((point) => axis.coordinate(point.x));
  // A point at the border belongs to both lines, so that they join.
  const among = (outside) => points.map((point, i) => (point.outside === outside || (outside && points[i - 1] && !points[i - 1].outside) || (outside && points[i + 1] && !points[i + 1].outside) ? point.mean : null));
  const text = points.map((point) => `${plain(law.variables[d].name)} = ${formatNumber(point.x)}<br>${plain(law.response.name)} = ${formatNumber(point.mean)} ${plain(law.response.unit)}<br>interval ${formatNumber(point.low)} to ${formatNumber(point.high)}${point.outside ? "<br>extrapolated" : ""}`);
  const line = (name, y, dash) => ({ type: "scatter", mode: "lines", name, x, y, text, hoverinfo: "text", line: { color, dash, width: 2.4 }, connectgaps: false });
  const band = bandTraces(x, points.map((point) => point.low), points.map((point) => point.high), color, `${law.level * 100} % interval`);
  return [...band, line("law, within the fitted range", among(false), "solid"), line("law, extrapolated", among(true), "dash")];
}

/** Runs over the chosen variable; the further from the sliders' values, the fainter. */
function lawPoints(data, law, indices, d, axis) {
  const rows = law.points.run;
  const spans = law.variables.map(({ grid }) => Math.max(1, grid.length - 1));
  const opacity = rows.map((_, at) => {
    let square = 0;
    law.variables.forEach((variable, i) => {
      if (i !== d) square += ((gridIndex(variable, law.points.values[variable.name][at]) - indices[i]) / spans[i]) ** 2;
    });
    return Math.max(0.05, Math.exp(-square / (2 * NEAR ** 2)));
  });
  const { color } = seriesStyle(1);
  const picked = rows.map((row) => state.selected.has(row));
  return {
    type: "scatter", mode: "markers", name: "measured runs", x: law.points.values[law.variables[d].name].map(axis.coordinate), y: law.points.L, customdata: rows,
    text: rows.map((row) => runWords(data, row, ["study", ...law.variables.map((one) => one.name), "L"])), hoverinfo: "text", legendcolor: color,
    marker: { color, symbol: "square", size: picked.map((is) => (is ? 12 : 8)), opacity: opacity.map((value, i) => (picked[i] ? 1 : value)), line: { width: picked.map((is) => (is ? 2 : 0)), color: css("ink") } },
  };
}

function rangeShapes(variable, axis) {
  const edges = [variable.grid[0], ...variable.fitted, variable.grid.at(-1)].map(axis.coordinate);
  const shape = (x0, x1) => ({ type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, fillcolor: css("faint"), opacity: 0.12, line: { width: 0 }, layer: "below" });
  return [[edges[0], edges[1]], [edges[2], edges[3]]].filter(([a, b]) => b > a).map(([a, b]) => shape(a, b));
}

function valueLine(x) {
  return { type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: { color: css("faint"), width: 1, dash: "dot" } };
}

function readout(law, indices) {
  const { mean, low, high } = lookUpAll(law, indices);
  const values = law.variables.map((variable, i) => `${variable.name} = ${formatNumber(gridValue(variable, indices[i]))}`);
  const outside = law.variables.filter((variable, i) => isOutside(variable, gridValue(variable, indices[i]))).map((variable) => variable.name);
  const unit = law.response.unit === "1" ? "" : ` ${law.response.unit}`;
  return `At ${values.join(", ")} the law gives ${law.response.name} = ${formatNumber(mean)}${unit}, with a ${formatNumber(law.level * 100)} % interval from ${formatNumber(low)} to ${formatNumber(high)}.${outside.length ? ` This is an extrapolation: ${outside.join(" and ")} ${outside.length > 1 ? "lie" : "lies"} outside of the fitted range.` : ""}`;
}

function sliderStep({ grid }) {
  return (grid.length - 1) / 400 || 1;
}

function slider(variable, index, moved) {
  const id = `slider-${variable.name}`;
  const output = h("output", { for: id });
  const input = h("input", { type: "range", id, min: 0, max: variable.grid.length - 1, step: sliderStep(variable), value: index });
  const tell = () => {
    const value = gridValue(variable, Number(input.value));
    output.textContent = withUnit(formatNumber(Number(value.toPrecision(4))), variable.unit) + (isOutside(variable, value) ? ", extrapolated" : "");
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => { tell(); moved(Number(input.value)); });
  tell();
  return h("div", { class: "slider" }, h("label", { for: id }, variableWords(variable)), input, output);
}

/** "54 runs, R² = 0.983, root mean square error 0.034", of what the fit reports. */
function metricWords({ n, r2, rmse }) {
  const known = [[n, (value) => plural(value, "run")], [r2, (value) => `R² = ${formatNumber(value)}`], [rmse, (value) => `root mean square error ${formatNumber(value)}`]];
  return known.filter(([value]) => typeof value === "number").map(([value, words]) => words(value)).join(", ");
}

function lawFacts(law) {
  const holdout = law.holdout ? metricWords(law.holdout) : "";
  const metrics = metricWords(law.metrics ?? {});
  return [
    h("p", { class: "equation" }, law.equation),
    metrics ? h("p", {}, `On the runs that it was fitted to: ${metrics}.${holdout ? ` On those held out: ${holdout}.` : ""}`) : null,
    law.warnings.length ? h("div", { class: "notes" }, h("h3", {}, "What the fit warns of"), h("ul", {}, law.warnings.map((text) => h("li", {}, text)))) : null,
    h("details", {}, h("summary", {}, "Parameters"), plainTable(["parameter", "estimate", "from", "to"], law.params.map((one) => [one.name, one.estimate, one.low, one.high]), [false, true, true, true], "Parameters of the law")),
  ];
}

/** The sliders start at the middle of what was fitted. */
function startIndices(law) {
  return law.variables.map((variable) => {
    const middle = (gridIndex(variable, variable.fitted[0]) + gridIndex(variable, variable.fitted[1])) / 2;
    return Math.round(middle / sliderStep(variable)) * sliderStep(variable);
  });
}

function lawsSection(data) {
  if (!data.laws.length) return section("laws", "Laws", h("p", {}, "No law is fitted to this tier's runs yet, so there is no curve to draw."));
  const pick = { law: data.laws[0], d: 0, indices: startIndices(data.laws[0]) };
  const describe = () => {
    const { law, d, indices } = pick;
    const axis = lawAxis(law.variables[d]);
    const points = curvePoints(law, indices, d);
    const at = axis.coordinate(gridValue(law.variables[d], indices[d]));
    const unit = law.response.unit === "1" ? "" : ` (${plain(law.response.unit)})`;
    return {
      data: [...lawTraces(law, points, d, axis), lawPoints(data, law, indices, d, axis)],
      layout: { xaxis: axis.look, yaxis: { title: `${plain(law.response.name)}${unit}`, type: law.response.log ? "log" : "linear", range: lawRange(law, points) }, shapes: [...rangeShapes(law.variables[d], axis), valueLine(at)] },
      label: `${law.title}: ${readout(law, indices)}`,
    };
  };
  const drawn = plot(describe, { plotly_click: (event) => { const row = event.points[0].customdata; if (row !== undefined) change({ chosen: row }); } });
  drawn.box.id = "law-plot";
  const said = h("p", { id: "readout", role: "status", "aria-live": "polite" });
  const moved = () => { said.textContent = readout(pick.law, pick.indices); drawn.update(); };
  const controls = h("div", { class: "bar" });
  const sliders = h("div", { class: "sliders" });
  const facts = h("div");
  const refill = () => {
    const { law, d } = pick;
    const change_ = (id) => { const next = data.laws.find((one) => one.id === id); Object.assign(pick, { law: next, d: 0, indices: startIndices(next) }); refill(); };
    controls.replaceChildren(
      choice("Law", data.laws.map((one) => [one.id, `${one.title} (${one.id})`]), law.id, change_),
      choice("Across", law.variables.map((one, i) => [i, one.name]), d, (i) => { pick.d = Number(i); moved(); }), sourceBadge(law.source) ?? "");
    sliders.replaceChildren(...law.variables.map((variable, i) => slider(variable, pick.indices[i], (index) => { pick.indices[i] = index; moved(); })));
    facts.replaceChildren(...lawFacts(law).filter(Boolean));
    moved();
  };
  refill();
  watch(["selected", "theme"], drawn.update);
  return section("laws", "Laws", controls, sliders, said, drawn.element,
    h("p", { class: "hint" }, "The band is the interval of the prediction; it may leave the plot, for the upright axis follows the runs and the curve within their range. Shaded is what lies outside of the fitted runs' range; the law is dashed there. A run is drawn the fainter, the further the sliders are from its other variables: at a tenth of a slider's length it keeps 70 % of its ink. Selected runs are drawn in full."), facts);
}
