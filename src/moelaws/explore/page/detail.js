// One run: its configuration, provenance, loss curve and experts' load, in a dialog.

/** Returns rows of shares, one a layer, each over the even share 1/E; null where nothing was recorded. */
function loadOf(data, row) {
  const layers = data.load[row];
  if (!layers.length) return null;
  return layers.map((own) => {
    const even = own.reduce((sum, value) => sum + value, 0) / own.length || 1;
    return own.map((value) => value / even);
  });
}

function lossPlot(data, row) {
  const curve = data.curves[row];
  if (!curve.step.length) return { element: h("p", {}, "No training curve of this run is at hand."), remove() {} };
  return plot(() => {
    return {
      data: curveTraces(data, [row], seriesStyle(0), "step", 0),
      layout: { xaxis: { title: "optimizer step" }, yaxis: { title: "loss (nats/token)" } },
      label: `Training loss over ${plural(curve.step.length, "logged step")}, last ${formatNumber(curve.loss.at(-1))} nats/token.`,
    };
  });
}

function loadPlot(data, row) {
  const load = loadOf(data, row);
  if (!load) return { element: h("p", {}, "No experts' load of this run is at hand: it is dense, or has no record of it."), remove() {} };
  const least = Math.min(...load.flat());
  const most = Math.max(...load.flat());
  return plot(() => ({
    data: [{
      type: "heatmap", z: load, colorscale: colorscale(), zmin: 0, xgap: 1, ygap: 1,
      colorbar: { orientation: "h", y: 1, yanchor: "bottom", thickness: 8, len: 0.9, title: { text: "load over the even load 1/E", side: "top" } },
      hovertemplate: "layer %{y}, expert %{x}: %{z:.3f} times the even load<extra></extra>",
    }],
    layout: {
      height: Math.min(420, 190 + 26 * load.length), margin: { l: 60, r: 14, t: 76, b: 50 },
      xaxis: { title: "expert", showgrid: false }, yaxis: { title: "layer", autorange: "reversed", dtick: Math.ceil(load.length / 12), showgrid: false },
    },
    label: `Load of ${load[0].length} experts in ${plural(load.length, "layer")}: from ${formatNumber(least)} to ${formatNumber(most)} times the even load.`,
  }));
}

function keyValues(pairs, missing) {
  const rows = Object.entries(pairs).map(([key, value]) =>
    h("tr", {}, h("th", { scope: "row" }, key), h("td", {}, typeof value === "object" && value !== null ? JSON.stringify(value) : String(value ?? ""))));
  return rows.length ? h("div", { class: "scroll" }, h("table", { class: "pairs" }, h("tbody", {}, rows))) : h("p", {}, missing);
}

function results(data, row) {
  const known = data.columns.filter((column) => !column.missing(row));
  return Object.fromEntries(known.map((column) => [column.name, withUnit(column.numeric ? column.full(row) : column.text(row), column.unit)]));
}

function detailHeading(data, row, close) {
  const id = runId(data, row);
  const status = data.column("status")?.text(row);
  const loss = data.column("L");
  const words = [data.column("name")?.text(row) ? `run ${id}` : "", status, loss && !loss.missing(row) ? `L = ${loss.text(row)} ${loss.unit}` : "without a validation loss"];
  const pick = button(state.selected.has(row) ? "Remove from the selection" : "Add to the selection", (event) => {
    toggle(row);
    event.target.textContent = state.selected.has(row) ? "Remove from the selection" : "Add to the selection";
  });
  return [
    h("div", { class: "title" }, h("h2", { id: "detail-title" }, data.column("name")?.text(row) || id), button("Close", close, { autofocus: true })),
    h("p", {}, words.filter(Boolean).join(", "), " ", sourceBadge(data.column("source")?.text(row))),
    h("div", { class: "bar" }, pick,
      button("Copy run id", (event) => copy(event.target, id)),
      button("Copy “moelaws show”", (event) => copy(event.target, `moelaws show ${id}`))),
  ];
}

/** Opens the dialog whenever a run is chosen, and forgets the run when it closes. */
function watchDetail(data) {
  const dialog = document.getElementById("detail");
  let drawn = [];
  const close = () => dialog.close();
  dialog.addEventListener("close", () => {
    drawn.forEach((one) => one.remove());
    drawn = [];
    dialog.replaceChildren();
    change({ chosen: null });
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });
  watch(["chosen"], () => {
    const row = state.chosen;
    if (row === null) return;
    drawn.forEach((one) => one.remove());
    drawn = [lossPlot(data, row), loadPlot(data, row)];
    const part = (title, content, open = true) => h("details", { open }, h("summary", {}, h("h3", {}, title)), content);
    dialog.replaceChildren(h("div", { class: "sheet" }, ...detailHeading(data, row, close),
      part("Loss curve", drawn[0].element),
      part("Experts' load at the end of training", drawn[1].element),
      part("Configuration", keyValues(data.details[row].config ?? {}, "No configuration of this run is at hand.")),
      part("Provenance", keyValues(data.details[row].provenance ?? {}, "No provenance of this run is at hand.")),
      part("All columns of the table", keyValues(results(data, row), ""), false)));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  });
  watch(["theme"], () => drawn.forEach((one) => one.update?.()));
}
