// Elements and words. All that comes from the data becomes a text node: markup in it stays text.

/** Returns an element; attributes named on… are listeners, `class` and others are set as given. */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Plotly reads tags and entities in its labels; this makes it show them as they are. */
function plain(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Four significant digits; whole numbers below 100,000 are written in full. */
function formatNumber(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e5) return String(value).replace("-", "−");
  if (size >= 1e5 || size < 1e-3) {
    const [digits, power] = value.toExponential(3).split("e");
    return `${Number(digits)}e${Number(power)}`.replaceAll("-", "−");
  }
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

/** A size as people write it: 950, 64k, 1.2M, 17B. */
function shortNumber(value) {
  const [scale, unit] = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]].find(([least]) => value >= 0.9995 * least) ?? [1, ""];
  return `${Number((value / scale).toPrecision(3))}${unit}`;
}

function withUnit(text, unit) {
  return unit && unit !== "1" ? `${text} ${unit}` : text;
}

/** "L: validation loss (nats/token)", without the part of a description that goes into detail. */
function columnTitle(column, most = 60) {
  const words = column.description.split(/[;:]/)[0];
  const short = words && words.length <= most ? `${column.name}: ${words}` : column.name;
  return column.unit ? `${short} (${column.unit})` : short;
}

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Whether the window is as narrow as a phone's. */
function isNarrow() {
  return window.innerWidth < 600;
}

/** A labelled select; `options` are [value, words]; `changed` gets the new value. */
function choice(label, options, value, changed) {
  const select = h("select", { onchange: () => changed(select.value) });
  for (const [key, words] of options) {
    select.append(h("option", { value: key, selected: String(key) === String(value) }, words));
  }
  return h("label", { class: "choice" }, `${label} `, select);
}

function tick(label, checked, changed) {
  const box = h("input", { type: "checkbox", checked, onchange: () => changed(box.checked) });
  return h("label", { class: "tick" }, box, ` ${label}`);
}

function button(label, pressed, attributes = {}) {
  return h("button", { type: "button", onclick: pressed, ...attributes }, label);
}

/** A table in a box that scrolls by itself; `numeric[i]` sets column i to the right. */
function plainTable(columns, rows, numeric = [], label = "Table") {
  const side = (i, cell = "") => ({ class: `${numeric[i] ? "number" : ""} ${String(cell ?? "").length > 16 ? "long" : ""}` });
  const shown = (cell) => (typeof cell === "number" ? formatNumber(cell) : String(cell ?? ""));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, columns.map((name, i) => h("th", { scope: "col", ...side(i) }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", side(i, cell), shown(cell))))))));
}

/** Shows `contents` in a dialog that a click beside it closes. */
function showDialog(title, ...contents) {
  const dialog = document.getElementById("enlarged");
  const close = () => dialog.close();
  dialog.replaceChildren(h("div", { class: "title" }, h("h2", { id: "enlarged-title" }, title), button("Close", close, { autofocus: true })), ...contents.filter(Boolean));
  dialog.onclick = (event) => { if (event.target === dialog) close(); };
  dialog.showModal();
}

/** A section of the page, reached from the navigation by its id. */
function section(id, title, ...children) {
  const heading = h("h2", { id: `${id}-title` }, title);
  return h("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}
