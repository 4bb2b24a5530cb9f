// Any two columns of the runs against each other, coloured by a third.

const MOST_GROUPS = 12;

function axisOptions(data) {
  return data.columns.filter((column) => column.numeric || column.levels.length <= 40).map((column) => [column.name, columnTitle(column)]);
}

function columnOr(data, ...names) {
  return names.find((name) => data.column(name)) ?? data.columns[0].name;
}

/** What a run is, in words, for a plot's hover text. */
function runWords(data, row, names) {
  const parts = [...new Set(names)].map((name) => data.column(name)).filter((one) => one && !one.missing(row));
  const lines = parts.map((one) => `${one.name} = ${withUnit(one.text(row), one.unit)}`);
  return [runName(data, row), ...lines].map(plain).join("<br>");
}

function axisFor(column, rows, log) {
  const known = rows.map(column.number).filter((value) => !Number.isNaN(value));
  const type = !column.numeric ? "category" : log && known.every((value) => value > 0) ? "log" : "linear";
  return { title: plain(columnTitle(column)), type };
}

function place(column, row) {
  return column.numeric ? column.number(row) : plain(column.text(row));
}

/** Rows grouped by what colours them: [{name, rows}], or null where a number does. */
function groupsOf(column, rows) {
  if (!column || column.numeric) return null;
  const counts = new Map();
  for (const row of rows) {
    const key = column.text(row) || "(missing)";
    if (!counts.has(key)) counts.set(key, []);
    counts.get(key).push(row);
  }
  const groups = [...counts].sort((a, b) => b[1].length - a[1].length).map(([name, own]) => ({ name, rows: own }));
  const rest = groups.splice(MOST_GROUPS);
  if (rest.length) groups.push({ name: `${rest.length} others`, rows: rest.flatMap((group) => group.rows) });
  return groups;
}

/** A marker coloured by a number, with a bar that says so above the plot. */
function numberMarker(column, rows) {
  const raw = rows.map(column.number);
  const wide = isWide(raw);
  const values = raw.map((value) => (wide ? Math.log10(value) : value));
  const known = values.filter((value) => !Number.isNaN(value));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const ticks = [0, 1, 2, 3, 4].map((i) => low + ((high - low) * i) / 4);
  const colorbar = {
    orientation: "h", y: 1, yanchor: "bottom", thickness: 8, len: 0.9, outlinewidth: 0,
    title: { text: plain(columnTitle(column)), side: "top" }, tickvals: ticks, ticktext: ticks.map((value) => formatNumber(Number((wide ? 10 ** value : value).toPrecision(3)))),
  };
  return { color: values.map((value) => (Number.isNaN(value) ? low : value)), cmin: low, cmax: high, colorscale: colorscale(), colorbar, showscale: known.length > 0 };
}

function scatterTraces(data, pick, rows) {
  const [x, y, color] = [pick.x, pick.y, pick.color].map(data.column);
  const groups = groupsOf(color, rows) ?? [{ name: color ? "" : "runs", rows }];
  return groups.map((group, i) => {
    const style = seriesStyle(i);
    const marker = color?.numeric ? numberMarker(color, group.rows) : { color: style.color, symbol: style.symbol };
    return {
      type: "scatter",
      mode: "markers",
      name: group.name,
      x: group.rows.map((row) => place(x, row)),
      y: group.rows.map((row) => place(y, row)),
      customdata: group.rows,
      text: group.rows.map((row) => runWords(data, row, [pick.x, pick.y, pick.color, "study", "status"])),
      hoverinfo: "text",
      marker: { size: 8, line: { width: 0.6, color: css("paper") }, ...marker },
      selectedpoints: state.selected.size ? group.rows.flatMap((row, at) => (state.selected.has(row) ? [at] : [])) : null,
      selected: { marker: { opacity: 1, size: 11 } },
      unselected: { marker: { opacity: 0.22 } },
    };
  });
}

function scatterSection(data) {
  const pick = {
    x: columnOr(data, "N_active", "N_total", "C"),
    y: columnOr(data, "L"),
    color: columnOr(data, "S", "study"),
    logX: true,
    logY: false,
  };
  const describe = () => {
    const rows = shownRows();
    const [x, y] = [data.column(pick.x), data.column(pick.y)];
    const [xaxis, yaxis] = [axisFor(x, rows, pick.logX), axisFor(y, rows, pick.logY)];
    const top = data.column(pick.color)?.numeric ? 76 : 34;
    return {
      data: scatterTraces(data, pick, rows),
      layout: { xaxis, yaxis, dragmode: "select", selections: [], margin: { l: 60, r: 14, t: top, b: 50 }, uirevision: JSON.stringify(pick) },
      label: `Scatter plot of ${plural(rows.length, "run")}: ${columnTitle(y)} against ${columnTitle(x)}. The table above holds the same numbers.`,
    };
  };
  const rowsOf = (event) => event.points.map((point) => point.customdata);
  const drawn = plot(describe, {
    plotly_selected: (event) => event && select(rowsOf(event), false),
    plotly_deselect: () => select([]),
    plotly_click: (event) => change({ chosen: rowsOf(event)[0] }),
  });
  drawn.box.id = "scatter-plot";
  watch(["rows", "selected", "onlySelected", "theme"], drawn.update);
  const set = (key) => (value) => { pick[key] = value; drawn.update(); };
  const options = axisOptions(data);
  return section("scatter", "Two columns against each other",
    h("div", { class: "bar" },
      choice("Across", options, pick.x, set("x")), tick("log", pick.logX, set("logX")),
      choice("Up", options, pick.y, set("y")), tick("log", pick.logY, set("logY")),
      choice("Colour", [["", "none"], ...options], pick.color, set("color"))),
    drawn.element,
    h("p", { class: "hint" }, "Draw a box around points to select their runs everywhere; a double click clears the selection; a click on a point opens its run. The tools above the plot zoom, pan and draw a lasso. A log axis is used where all values are positive."));
}
