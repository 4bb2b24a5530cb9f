// One plot: drawn when first seen, again when its data, the theme or its width change.
// Its legend is a row of buttons below it, so that it never covers an axis and works by keyboard.

const PLOT_CONFIG = {
  displaylogo: false,
  responsive: true,
  showSendToCloud: false,
  modeBarButtonsToRemove: ["sendDataToCloud", "autoScale2d"],
};

function axisLook(axis = {}) {
  const grid = css("grid");
  const title = typeof axis.title === "string" ? { text: axis.title, standoff: 14 } : axis.title;
  return { gridcolor: grid, linecolor: css("faint"), zeroline: false, automargin: true, exponentformat: "power", ...axis, title };
}

function powerWords(digit, power) {
  if (power >= -3 && power <= 4) return String(Number(`${digit}e${power}`));
  return `${digit === 1 ? "" : `${digit}×`}10<sup>${String(power).replace("-", "−")}</sup>`;
}

/** Ticks of a log axis as whole numbers, not as Plotly's lone digits between powers of ten. */
function logTicks(axis, values) {
  const known = values.filter((value) => typeof value === "number" && value > 0);
  if (axis.type !== "log" || axis.tickvals || (!known.length && !axis.range)) return {};
  const [low, high] = axis.range ?? [Math.log10(known.reduce((a, b) => Math.min(a, b))), Math.log10(known.reduce((a, b) => Math.max(a, b)))];
  const every = Math.ceil((high - low) / 8);
  const digits = high - low > (isNarrow() ? 1.4 : 3) ? [1] : high - low > 1 ? [1, 2, 5] : high - low > 0.4 ? [1, 2, 3, 4, 5, 6, 8] : null;
  if (!digits) return { tickformat: ".4~g", nticks: 7 };
  const ticks = [];
  for (let power = Math.floor(low) - 1; power <= Math.ceil(high); power += 1) {
    if (every > 1 && power % every) continue;
    for (const digit of digits) ticks.push([digit, power]);
  }
  return { tickvals: ticks.map(([digit, power]) => Number(`${digit}e${power}`)), ticktext: ticks.map(([digit, power]) => powerWords(digit, power)) };
}

function layoutLook(layout, data) {
  const along = (key) => ({ ...layout[`${key}axis`], ...logTicks(layout[`${key}axis`] ?? {}, data.flatMap((trace) => trace[key] ?? [])) });
  const font = { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("ink") };
  return {
    font,
    paper_bgcolor: css("paper"),
    plot_bgcolor: css("paper"),
    margin: { l: 60, r: 14, t: 34, b: 50 },
    hoverlabel: { bgcolor: css("raised"), bordercolor: css("faint"), font, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: css("faint"), activecolor: css("accent") },
    hovermode: "closest",
    dragmode: "zoom",
    showlegend: false,
    ...layout,
    xaxis: axisLook(along("x")),
    yaxis: axisLook(along("y")),
  };
}

/** Which points have a selected run, of the runs of each point; null where none is selected anywhere. */
function selectedOf(sets) {
  return state.selected.size ? sets.flatMap((rows, at) => (rows.some((row) => state.selected.has(row)) ? [at] : [])) : null;
}

const plots = [];
const views = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const plot = plots.find((one) => one.box === entry.target);
    if (!plot) continue;
    plot.visible = entry.isIntersecting;
    if (plot.visible && plot.dirty) plot.draw();
  }
}, { rootMargin: "250px" });

/**
 * Returns a plot: `element` to put in the page and `update()`. `describe()` gives {data, layout, label};
 * a trace's name is its entry in the legend (showlegend: false leaves it out) and may be any text;
 * traces of one legendgroup are hidden together. `events` are Plotly's, by name.
 */
function plot(describe, events = {}) {
  const box = h("div", { class: "plot", role: "img" });
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Legend: each button hides or shows a series" });
  const self = { box, element: h("div", { class: "figure" }, box, legend), visible: false, dirty: true, hidden: new Set() };
  let ready = null;
  self.draw = async () => {
    self.dirty = false;
    const Plotly = await plotly();
    const { data, layout, label } = describe();
    box.setAttribute("aria-label", label);
    if (layout.height) box.style.minHeight = `${layout.height}px`;
    showLegend(legend, data, self);
    const key = (trace) => trace.legendgroup ?? trace.name;
    const traces = data.map((trace) => ({ ...trace, name: plain(trace.name ?? ""), visible: !self.hidden.has(key(trace)) }));
    await Plotly.react(box, traces, layoutLook(layout, data), PLOT_CONFIG);
    if (!ready) for (const [name, told] of Object.entries(events)) box.on(name, told);
    ready = true;
  };
  self.update = () => {
    self.dirty = true;
    if (self.visible) self.draw();
  };
  self.remove = () => {
    views.unobserve(box);
    plots.splice(plots.indexOf(self), 1);
    if (ready) window.Plotly.purge(box);
  };
  plots.push(self);
  views.observe(box);
  return self;
}

function showLegend(legend, data, self) {
  const focused = legend.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const entries = data.filter((trace) => trace.name && trace.showlegend !== false);
  legend.replaceChildren(...(entries.length > 1 ? entries : []).map((trace) => {
    const key = trace.legendgroup ?? trace.name;
    const flip = () => {
      if (!self.hidden.delete(key)) self.hidden.add(key);
      self.draw();
    };
    return button([swatch(trace), ` ${trace.name}`], flip, { "aria-pressed": String(!self.hidden.has(key)), "data-key": key });
  }));
  if (focused) [...legend.children].find((one) => one.dataset.key === focused)?.focus();
}

const DASH_LENGTHS = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2", longdash: "9 3" };

function swatch(trace) {
  const mark = h("span", { class: "swatch", "aria-hidden": "true" });
  if (trace.mode?.includes("lines")) {
    const svg = svgElement("svg", { width: 26, height: 10 });
    svg.append(svgElement("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: trace.line.color, "stroke-width": 2.5, "stroke-dasharray": DASH_LENGTHS[trace.line.dash ?? "solid"] }));
    mark.append(svg);
  }
  if (trace.mode?.includes("markers")) {
    const glyph = h("span", {}, GLYPHS[trace.marker.symbol] ?? "●");
    glyph.style.color = trace.legendcolor ?? trace.marker.color;
    mark.append(glyph);
  }
  return mark;
}

function svgElement(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
