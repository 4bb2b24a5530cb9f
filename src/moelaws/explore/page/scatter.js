// Any two columns of the runs against each other, coloured by a third.

const MOST_GROUPS = 12;

function axisOptions(data) {
  return data.columns.filter((column) => column.numeric || column.levels.length <= 40).map((column) => [column.name, columnTitle(column)]);
}

function columnOr(data, ...names) {
  return names.find((name) => data.column(name)) ?? data.columns[0].name;
}

/** What a run is, or the mean of several that differ in their seed alone, in words for a plot's hover text. */
function runWords(data, runs, names) {
  const [row, ...others] = [runs].flat();
  const parts = [...new Set(names)].map((name) => data.column(name)).filter((one) => one && !one.missing(row));
  const lines = parts.map((one) => `${one.name} = ${withUnit(one.numeric ? formatNumber(place(one, [row, ...others])) : one.text(row), one.unit)}`);
  return [setName(data, [row, ...others]), ...lines].map(plain).join("<br>");
}

function axisFor(column, rows, log, most) {
  const known = rows.map(column.number).filter((value) => !Number.isNaN(value));
  const type = !column.numeric ? "category" : log && known.every((value) => value > 0) ? "log" : "linear";
  return { title: plain(columnTitle(column, isNarrow() ? 20 : most)), type };
}

/** Where runs lie on an axis: at the mean of their numbers, or at the text of the first. */
function place(column, rows) {
  return column.numeric ? mean(rows.map(column.number)) : plain(column.text(rows[0]) || "(empty)");
}

/** Rows grouped by what colours them: [{name, rows}], or null where a number does. */
function groupsOf(column, rows) {
  if (!column || column.numeric) return null;
  const counts = new Map();
  for (const row of rows) {
    const key = column.text(row) || "(empty)";
    if (!counts.has(key)) counts.set(key, []);
    counts.get(key).push(row);
  }
  const groups = [...counts].sort((a, b) => b[1].length - a[1].length).map(([name, own]) => ({ name, rows: own }));
  const rest = groups.splice(MOST_GROUPS);
  if (rest.length) groups.push({ name: `${rest.length} others`, rows: rest.flatMap((group) => group.rows) });
  return groups;
}

/** Rows that have the number which colours them, and the others. */
function numbered(color, rows) {
  const without = { name: "", uncoloured: true, rows: rows.filter(color.missing) };
  const having = { name: "", rows: rows.filter((row) => !color.missing(row)) };
  return [having, without].filter((group) => group.rows.length);
}

/** A marker coloured by a number, with a bar that says so above the plot. */
function numberMarker(column, sets) {
  const raw = sets.map((rows) => place(column, rows));
  const wide = isWide(raw);
  const values = raw.map((value) => (wide ? Math.log10(value) : value));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const ticks = [0, 1, 2, 3, 4].map((i) => low + ((high - low) * i) / 4);
  const colorbar = {
    orientation: "h", y: 1, yanchor: "bottom", thickness: 8, len: 0.9, outlinewidth: 0,
    title: { text: plain(columnTitle(column)), side: "top" }, tickvals: ticks, ticktext: ticks.map((value) => formatNumber(Number((wide ? 10 ** value : value).toPrecision(3)))),
  };
  return { color: values, cmin: low, cmax: high, colorscale: colorscale(), colorbar, showscale: true };
}

function scatterTraces(data, pick, rows) {
  const [x, y, color] = [pick.x, pick.y, pick.color].map(data.column);
  const groups = groupsOf(color, rows) ?? (color ? numbered(color, rows) : [{ name: "runs", rows }]);
  return groups.map((group, i) => {
    const style = group.uncoloured ? { color: css("faint"), symbol: "circle-open" } : seriesStyle(i);
    const sets = seedGroups(data, group.rows, pick.seeds).map((set) => set.map((at) => group.rows[at]));
    const marker = color?.numeric && !group.uncoloured ? numberMarker(color, sets) : { color: style.color, symbol: style.symbol };
    return {
      type: "scatter",
      mode: "markers",
      name: group.name,
      x: sets.map((rows) => place(x, rows)),
      y: sets.map((rows) => place(y, rows)),
      customdata: sets,
      text: sets.map((rows) => runWords(data, rows, [pick.x, pick.y, pick.color, "study", "source", "status"])),
      hoverinfo: "text",
      marker: { size: 8, line: { width: 0.6, color: css("paper") }, ...marker },
      selectedpoints: selectedOf(sets),
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
    seeds: false,
  };
  const absent = h("p", { class: "hint", role: "status" });
  const describe = () => {
    const [x, y] = [data.column(pick.x), data.column(pick.y)];
    const rows = shownRows().filter((row) => !x.missing(row) && !y.missing(row));
    const elsewhere = data.column("source") ? groupsOf(data.column("source"), rows).filter((group) => group.name !== "trained") : [];
    const left = shownRows().length - rows.length;
    const sources = elsewhere.map((group) => `${plural(group.rows.length, "run")} of these ${group.rows.length === 1 ? "is" : "are"} ${group.name}. `).join("");
    const color = data.column(pick.color);
    const grey = color?.numeric ? rows.filter(color.missing).length : 0;
    const greys = grey ? `${plural(grey, "run")} without a value of ${color.name} ${grey === 1 ? "is a grey circle" : "are grey circles"}. ` : "";
    absent.textContent = sources + greys + (left ? `${plural(left, "run")} without a value of ${x.name} or ${y.name} ${left === 1 ? "is" : "are"} not drawn.` : "");
    const [xaxis, yaxis] = [axisFor(x, rows, pick.logX, 60), axisFor(y, rows, pick.logY, 32)];
    const top = data.column(pick.color)?.numeric ? 76 : 34;
    return {
      data: scatterTraces(data, pick, rows),
      layout: { xaxis, yaxis, dragmode: "select", selections: [], margin: { l: 60, r: 14, t: top, b: 50 }, uirevision: JSON.stringify(pick) },
      label: `Scatter plot of ${plural(rows.length, "run")}: ${columnTitle(y)} against ${columnTitle(x)}. The table of runs holds the same numbers.`,
    };
  };
  const rowsOf = (event) => event.points.flatMap((point) => point.customdata);
  const drawn = plot(describe, {
    plotly_selected: (event) => event && select(rowsOf(event), false),
    plotly_deselect: () => select([]),
    plotly_click: (event) => change({ chosen: rowsOf(event)[0] }),
  });
  drawn.box.id = "scatter-plot";
  watch(["rows", "selected", "onlySelected", "theme"], drawn.update);
  const set = (key) => (value) => { pick[key] = value; drawn.update(); };
  const options = axisOptions(data);
  return section("scatter", "Two columns against each other", drawn.element, absent,
    h("div", { class: "bar" },
      h("span", { class: "pair" }, choice("Across", options, pick.x, set("x")), tick("log", pick.logX, set("logX"))),
      h("span", { class: "pair" }, choice("Up", options, pick.y, set("y")), tick("log", pick.logY, set("logY"))),
      choice("Colour", [["", "none"], ...options], pick.color, set("color")), tick("mean of seeds", pick.seeds, set("seeds"))),
    h("p", { class: "hint" }, "Draw a box around points to select their runs everywhere; a double click clears the selection; a click on a point opens its run. The tools above the plot zoom, pan and draw a lasso. A log axis is used where all values are positive."));
}
