// IsoFLOP curves: loss over size at equal compute, with the fit and its optimum. Many curves are
// those of the largest budget at first. The controls are below, so that the plot is on the first screen.

function isoflopGroups(one, by) {
  return [...new Set(one.series.map((series) => series[by]))].filter((value) => value !== null && value !== undefined).sort((a, b) => a - b);
}

/** Limits of the loss axis from the measured losses, so that a wide interval does not flatten them. */
function lossRange(series) {
  const losses = series.flatMap((one) => one.L).filter((loss) => loss !== null && Number.isFinite(loss));
  if (!losses.length) return null;
  const low = losses.reduce((a, b) => Math.min(a, b));
  const high = losses.reduce((a, b) => Math.max(a, b));
  const margin = 0.08 * (high - low || 0.1);
  return [low - margin, high + margin];
}

function bandTraces(x, low, high, color, group) {
  const line = { width: 0, color };
  const common = { type: "scatter", mode: "lines", x, line, hoverinfo: "skip", showlegend: false, legendgroup: group };
  return [{ ...common, y: low }, { ...common, y: high, fill: "tonexty", fillcolor: `${color}2b` }];
}

function isoflopTraces(data, one, series, style, bands, seeds) {
  const { curve } = series;
  const label = series.label.replaceAll("e+", "e");
  const traces = [];
  if (bands) traces.push(...bandTraces(curve.x, curve.low, curve.high, style.color, label));
  traces.push({ type: "scatter", mode: "lines", x: curve.x, y: curve.mean, line: { color: style.color, dash: style.dash, width: 2 }, legendgroup: label, showlegend: false, name: label, hoverinfo: "skip" });
  const sets = seedGroups(data, series.run, seeds);
  const [x, L] = [series.x, series.L].map((values) => sets.map((set) => mean(set.map((i) => values[i]))));
  const runs = sets.map((set) => set.map((i) => series.run[i]).filter((row) => row !== null));
  traces.push({
    type: "scatter", mode: "markers", name: label, legendgroup: label, x, y: L, customdata: runs,
    marker: { color: style.color, symbol: style.symbol, size: 8 }, legendcolor: style.color, hoverinfo: "text",
    text: runs.map((rows, i) => `${rows.length ? `${runWords(data, rows, ["C", "S"])}<br>` : ""}${plain(one.x.name)} = ${formatNumber(x[i])} ${plain(one.x.unit)}, L = ${formatNumber(L[i])} nats/token`),
    selectedpoints: selectedOf(runs),
    selected: { marker: { opacity: 1, size: 11 } }, unselected: { marker: { opacity: 0.3 } },
  });
  const best = optimumOf(series);
  if (best) {
    traces.push({
      type: "scatter", mode: "markers", x: [best.x], y: [best.L], legendgroup: label, showlegend: false, name: `${label}, least`,
      marker: { color: css("paper"), symbol: best.bound ? "star-triangle-up" : "star", size: 14, line: { color: style.color, width: 2 } },
      hoverinfo: "text", text: [`${plain(label)}<br>least at about ${formatNumber(Number(best.x.toPrecision(2)))}${best.bound ? "<br>It lies at the end of the sizes that were trained: a bound, not an optimum." : ""}`],
    });
  }
  return traces;
}

function isoflopSection(data) {
  const pick = { at: 0, C: "", S: "", bands: false, seeds: false };
  const chosen = () => data.isoflop[pick.at];
  const shown = () => chosen().series.filter((one) => ["C", "S"].every((by) => pick[by] === "" || one[by] === Number(pick[by])));
  const describe = () => {
    const one = chosen();
    const series = shown();
    const sizes = series.flatMap((own) => own.x);
    return {
      data: series.flatMap((own, i) => isoflopTraces(data, one, own, seriesStyle(i), pick.bands || series.length === 1, pick.seeds)),
      layout: {
        xaxis: { title: plain(columnTitle(data.column(one.x.name), isNarrow() ? 20 : 60)), type: isWide(sizes) || sizes.every((size) => size > 0) ? "log" : "linear" },
        yaxis: { title: "validation loss (nats/token)", range: lossRange(series) },
      },
      label: `IsoFLOP curves of ${plural(series.length, "series")}: validation loss over ${one.x.name}.`,
    };
  };
  const drawn = plot(describe, {
    plotly_click: (event) => { const row = event.points[0].customdata?.[0]; if (row !== undefined) change({ chosen: row }); },
  });
  drawn.box.id = "isoflop-plot";
  const controls = h("div", { class: "bar" });
  const set = (key) => (value) => { pick[key] = value; drawn.update(); };
  const refill = () => {
    const only = (by, words, unit) => choice(words, [["", "all"], ...isoflopGroups(chosen(), by).map((value) => [value, withUnit(formatNumber(value), unit)])], pick[by], set(by));
    const settle = (at) => {
      const budgets = isoflopGroups(data.isoflop[at], "C");
      Object.assign(pick, { at: Number(at), C: data.isoflop[at].series.length > 8 && budgets.length > 1 ? budgets.at(-1) : "", S: "" });
    };
    const change_ = (at) => { settle(at); refill(); drawn.update(); };
    if (!controls.childNodes.length) settle(pick.at);
    controls.replaceChildren(
      choice("Study", data.isoflop.map((one, i) => [i, one.title]), pick.at, change_),
      only("C", "Budget", "FLOPs"), only("S", "Sparsity S", ""), tick("intervals", pick.bands, set("bands")), tick("mean of seeds", pick.seeds, set("seeds")), sourceBadge(chosen().source) ?? "");
  };
  refill();
  watch(["selected", "theme"], drawn.update);
  return section("isoflop", "Loss over size at equal compute (isoFLOP curves)", drawn.element, controls,
    h("p", { class: "hint" }, "Points are runs, lines the fit at that compute, stars the lowest point of the line. Where it lies at the end of the trained sizes, its star carries a triangle: it is a bound. The study's derived tables below have the optima with their intervals. The loss axis follows the measured losses; an interval may leave it."));
}
