// Parallel coordinates: each run is a line across axes; a range drawn on an axis selects its runs.

const PARALLEL = { top: 46, bottom: 16, side: 46, height: 330, gap: 96 };
const FIRST_AXES = ["C", "S", "N_total", "N_active", "D", "lr", "L"];

/** An axis: `at(row)` is the height in 0..1 (null where missing), `value(height)` its inverse in words. */
function parallelAxis(column, rows) {
  if (!column.numeric) {
    const names = [...new Set(rows.filter((row) => !column.missing(row)).map((row) => column.text(row)))].sort();
    const height = new Map(names.map((name, i) => [name, names.length > 1 ? i / (names.length - 1) : 0.5]));
    return { column, at: (row) => height.get(column.text(row)) ?? null, low: names[0] ?? "", high: names.at(-1) ?? "", ticks: names.length > 8 ? [] : names.slice(1, -1).map((name) => [height.get(name), name]) };
  }
  const values = rows.map(column.number).filter((value) => !Number.isNaN(value));
  const scale = isWide(values) ? Math.log : (value) => value;
  const [low, high] = values.length ? [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))] : [0, 1];
  const span = scale(high) - scale(low) || 1;
  const log = scale === Math.log;
  const inverse = (height) => (log ? low * (high / low) ** height : low + (high - low) * height);
  const position = (value) => (high === low ? 0.5 : (scale(value) - scale(low)) / span);
  return {
    column,
    position,
    at: (row) => (column.missing(row) ? null : position(column.number(row))),
    low: formatNumber(low),
    high: formatNumber(high),
    log,
    ticks: high === low ? [] : [0.25, 0.5, 0.75].map((height) => [height, formatNumber(Number(inverse(height).toPrecision(3)))]),
  };
}

function linePath(row, axes) {
  let path = "";
  let down = false;
  axes.forEach((axis, i) => {
    const height = axis.at(row);
    if (height !== null) path += `${down ? "L" : "M"}${axis.x} ${axis.y(height).toFixed(1)}`;
    down = height !== null;
  });
  return path;
}

/** Lines by colour: a path a bin of the colouring column, so that 1,000 runs are a dozen elements. */
function linePaths(data, axes, rows, colorName) {
  const axis = parallelAxis(data.column(colorName), rows);
  const colors = sequential();
  const bins = new Map();
  const put = (key, path) => bins.set(key, (bins.get(key) ?? "") + path);
  const some = rows.some((row) => state.selected.has(row));
  for (const row of rows) {
    const height = axis.at(row);
    const color = height === null ? css("faint") : colors[Math.round(height * (colors.length - 1))];
    put(some && !state.selected.has(row) ? "rest" : color, linePath(row, axes));
  }
  const rest = bins.get("rest");
  bins.delete("rest");
  const drawn = [...bins].map(([color, d]) => svgElement("path", { d, stroke: color, class: "line" }));
  return rest ? [svgElement("path", { d: rest, class: "line rest" }), ...drawn] : drawn;
}

function axisParts(axis, brush) {
  const { x, y, column } = axis;
  const words = (text, at, attributes = {}) => {
    const element = svgElement("text", { x, y: at, "text-anchor": "middle", ...attributes });
    element.textContent = text.length > 14 ? `${text.slice(0, 13)}…` : text;
    element.append(svgElement("title"));
    element.lastChild.textContent = text;
    return element;
  };
  const parts = [
    words(column.name + (axis.log ? " (log)" : ""), 14, { class: "name" }),
    words(axis.high, 34),
    words(axis.low, PARALLEL.height - 1),
    svgElement("line", { x1: x, x2: x, y1: y(0), y2: y(1), class: "axis" }),
  ];
  for (const [height, text] of axis.ticks) parts.push(words(text, y(height) + 4, { class: "tick", x: x + 4, "text-anchor": "start" }));
  if (brush) {
    parts.push(svgElement("rect", { x: x - 8, width: 16, y: y(brush[1]), height: Math.max(2, y(brush[0]) - y(brush[1])), class: "brush" }));
  }
  parts.push(svgElement("rect", { x: x - 22, width: 44, y: y(1) - 8, height: y(0) - y(1) + 16, class: "grip", "data-axis": column.name }));
  return parts;
}

/** Two numbers an axis, for readers who do not drag. */
function rangeInputs(axes, brushes, brushed) {
  return axes.filter((axis) => axis.position).map((axis) => {
    const ends = ["from", "to"].map((word) => h("input", { type: "number", step: "any", "aria-label": `${axis.column.name} ${word}`, placeholder: word === "from" ? axis.low : axis.high }));
    const read = () => {
      const [low, high] = ends.map((end) => (end.value === "" ? null : axis.position(Number(end.value))));
      if (low === null && high === null) brushes.delete(axis.column.name);
      else brushes.set(axis.column.name, [low ?? 0, high ?? 1]);
      brushed();
    };
    ends.forEach((end) => end.addEventListener("change", read));
    return h("fieldset", {}, h("legend", {}, columnTitle(axis.column)), ends[0], " to ", ends[1]);
  });
}

/** Drags on the axes' grips set brushes as heights; `changed(name, [low, high] or null)`. */
function watchBrush(svg, axes, changed) {
  let drag = null;
  const height = (event, axis) => {
    const top = svg.getBoundingClientRect().top;
    return Math.min(1, Math.max(0, (axis.y(0) - (event.clientY - top)) / (axis.y(0) - axis.y(1))));
  };
  const range = (event) => [drag.from, height(event, drag.axis)].sort((a, b) => a - b);
  svg.onpointerdown = (event) => {
    const axis = axes().find((one) => one.column.name === event.target.dataset?.axis);
    if (!axis) return;
    drag = { axis, from: height(event, axis) };
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  };
  svg.onpointermove = (event) => {
    if (drag) changed(drag.axis.column.name, range(event), false);
  };
  svg.onpointerup = (event) => {
    if (!drag) return;
    const [low, high] = range(event);
    changed(drag.axis.column.name, high - low < 0.01 ? null : [low, high], true);
    drag = null;
  };
}

function nearestRun(svg, axes, rows, event) {
  const box = svg.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const i = axes.findIndex((axis, at) => axes[at + 1] && x >= axis.x && x < axes[at + 1].x);
  if (i < 0) return null;
  const share = (x - axes[i].x) / (axes[i + 1].x - axes[i].x);
  let best = [9, null];
  for (const row of rows) {
    const [left, right] = [axes[i].at(row), axes[i + 1].at(row)];
    if (left === null || right === null) continue;
    const distance = Math.abs(axes[i].y(left) * (1 - share) + axes[i + 1].y(right) * share - y);
    if (distance < best[0]) best = [distance, row];
  }
  return best[1];
}

function parallelSection(data) {
  const names = new Set(FIRST_AXES.filter((name) => data.column(name)));
  const brushes = new Map();
  let axes = [];
  let colorName = columnOr(data, "L");
  const svg = svgElement("svg", { id: "parallel-plot", class: "parallel", role: "img", height: PARALLEL.height });
  const box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Parallel coordinates" }, svg);
  const inputs = h("div", { class: "ranges" });
  const draw = () => {
    const rows = shownRows();
    const width = Math.max(box.clientWidth || 700, PARALLEL.gap * names.size);
    const gap = (width - 2 * PARALLEL.side) / Math.max(1, names.size - 1);
    const y = (height) => PARALLEL.height - PARALLEL.bottom - 4 - height * (PARALLEL.height - PARALLEL.bottom - PARALLEL.top - 4);
    axes = data.columns.filter((one) => names.has(one.name)).map((one, i) => ({ ...parallelAxis(one, rows), x: PARALLEL.side + i * gap, y }));
    svg.setAttribute("width", width);
    svg.setAttribute("aria-label", `Parallel coordinates of ${plural(rows.length, "run")} over ${[...names].join(", ")}; the ranges below select as the axes do.`);
    svg.replaceChildren(...linePaths(data, axes, rows, colorName), ...axes.flatMap((axis) => axisParts(axis, brushes.get(axis.column.name))));
  };
  const brushed = () => {
    const chosen = axes.filter((axis) => brushes.has(axis.column.name));
    const inside = (row) => chosen.every((axis) => {
      const [low, high] = brushes.get(axis.column.name);
      const height = axis.at(row);
      return height !== null && height >= low - 1e-9 && height <= high + 1e-9;
    });
    own = true;
    select(chosen.length ? shownRows().filter(inside) : []);
    own = false;
  };
  let own = false;
  const refill = () => { draw(); inputs.replaceChildren(...rangeInputs(axes, brushes, brushed)); };
  watchBrush(svg, () => axes, (name, range, done) => {
    if (range) brushes.set(name, range);
    else brushes.delete(name);
    if (done) brushed();
    else draw();
  });
  svg.addEventListener("click", (event) => {
    const row = event.target.dataset?.axis ? null : nearestRun(svg, axes, shownRows(), event);
    if (row !== null) change({ chosen: row });
  });
  // A selection made elsewhere is no range of these axes, and a filter moves their ends.
  watch(["selected"], () => { if (!own) brushes.clear(); });
  watch(["rows", "onlySelected"], () => brushes.clear());
  watch(["rows", "selected", "onlySelected", "theme"], draw);
  new ResizeObserver(draw).observe(box);
  refill();
  const chooser = columnChooser(data, names, () => { brushes.clear(); refill(); });
  chooser.querySelector("summary").textContent = "Axes";
  return section("parallel", "Parallel coordinates",
    h("div", { class: "bar" },
      choice("Colour", axisOptions(data), colorName, (name) => { colorName = name; draw(); }),
      button("Clear the ranges", () => { select([]); refill(); }), chooser),
    box,
    h("p", { class: "hint" }, "Drag along an axis to select the runs in that range; ranges on several axes are taken together; a click on the axis removes its range. A click on a line opens its run. Dark lines are low in the colouring column, light ones are high."),
    h("details", {}, h("summary", {}, "Ranges as numbers"), inputs));
}
