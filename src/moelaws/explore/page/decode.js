"use strict";
// The data and Plotly's script lie in this file as base64 of gzip. Here they become strings, arrays
// of numbers, in which a missing one is NaN, and columns.

function bytes(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

async function inflate(id) {
  const packed = bytes(document.getElementById(id).textContent.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

let plotlyLoading = null;

/** Returns a promise of Plotly, which is unpacked when the first plot comes into view. */
function plotly() {
  plotlyLoading ??= inflate("plotly").then((text) => {
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
    return window.Plotly;
  });
  return plotlyLoading;
}

function numbers(values) {
  return Float64Array.from(values, (one) => one ?? NaN);
}

/** A column of the runs: `text(row)` and `number(row)` (NaN where missing) read one cell. */
function column(raw) {
  const numeric = raw.type === "number";
  const held = numeric ? numbers(raw.values) : raw.codes;
  const unit = raw.unit && raw.unit !== "1" ? raw.unit : "";
  const level = (row) => (held[row] < 0 ? null : raw.levels[held[row]]);
  return {
    name: raw.name,
    unit,
    description: raw.description || "",
    numeric,
    levels: raw.levels,
    codes: numeric ? null : held,
    number: numeric ? (row) => held[row] : () => NaN,
    missing: numeric ? (row) => Number.isNaN(held[row]) : (row) => held[row] < 0,
    text: numeric ? (row) => formatNumber(held[row]) : (row) => level(row) ?? "",
    full: numeric ? (row) => (Number.isNaN(held[row]) ? "" : String(held[row])) : (row) => level(row) ?? "",
  };
}

/** Returns the data with arrays decoded; `data.column(name)` is a column or undefined. */
function readData(text) {
  const data = JSON.parse(text);
  const columns = data.runs.columns.map(column);
  const byName = new Map(columns.map((one) => [one.name, one]));
  data.count = data.runs.count;
  data.columns = columns;
  data.column = (name) => byName.get(name);
  for (const curve of data.curves) {
    for (const key of ["step", "loss", "seconds"]) curve[key] = numbers(curve[key]);
  }
  for (const law of data.laws) {
    for (const key of ["mean", "low", "high"]) law[key] = numbers(law[key]);
  }
  return data;
}
