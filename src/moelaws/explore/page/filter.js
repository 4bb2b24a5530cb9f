// The filter: plain words match any text of a run; NAME>=VALUE and the like match a column. A number
// is compared as in spec/rows.py, at the digits that the page shows, or at all that are written.

const DIGITS = 4; // that formatNumber shows
const NUMBER = /^([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]+)|([kKMBT]))?$/u;
const POWERS = { k: "e3", K: "e3", M: "e6", B: "e9", T: "e12" };
// What may stand between two conditions. A comma without a space may separate words or thousands.
const BETWEEN = /("[^"]*"?)|(?<!\S)and(?!\S)|&|,(?=\s|$|[\p{L}_][\p{L}\p{N}_.]*\s*(?:>=|<=|!=|=|<|>))/gu;
const EXPRESSION = /^([\p{L}_][\p{L}\p{N}_.]*)(>=|<=|!=|=|<|>)(.*)$/su;
const COMPARE = {
  "=": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};

/** Splits at spaces and at what stands between conditions, but not in quotes nor around an operator. */
function filterWords(text) {
  const words = text.replace(BETWEEN, (_, quoted) => quoted ?? " ").match(/(?:"[^"]*"?|\s*(?:>=|<=|!=|=|<|>)\s*(?=\S)|[^\s"<>=!]+|[<>=!])+/gu) ?? [];
  return words.map((word) => word.trim()).filter(Boolean);
}

function unquoted(text) {
  return text.replaceAll('"', "");
}

function textTest(column, operator, value) {
  if (operator !== "=" && operator !== "!=") {
    throw new Error(`The column ${column.name} holds text: compare it with = or !=, not with ${operator}.`);
  }
  const allowed = new Set(unquoted(value).toLowerCase().split(","));
  const missing = allowed.has("missing");
  const among = (row) => (column.missing(row) ? missing : allowed.has(column.text(row).toLowerCase()));
  return operator === "=" ? among : (row) => !column.missing(row) && !among(row);
}

function numberTest(column, operator, value) {
  if (value.toLowerCase() === "missing" && (operator === "=" || operator === "!=")) {
    return (row) => column.missing(row) === (operator === "=");
  }
  const thousands = /^[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])/u;
  const plainly = value.replaceAll("−", "-").replace(thousands, (digits) => digits.replaceAll(",", ""));
  const [, digits, power = "", unit] = plainly.match(NUMBER) ?? [];
  if (!digits) {
    throw new Error(`${column.name}${operator}${value}: “${value}” is not a number. Write one such as 0.9, 125M or 1e20.`);
  }
  const bound = Number(digits + (POWERS[unit] ?? power));
  const written = Math.max(DIGITS, digits.replace(/\D/gu, "").replace(/^0+/u, "").length);
  // Half of the last digit, and what rounding makes of a number in between
  const half = bound && 0.5 * 10 ** (Number(bound.toExponential().split("e")[1]) - written + 1) * (1 + 1e-9);
  return (row) => {
    const cell = column.number(row);
    const inFull = Number.isInteger(cell) && Math.abs(cell) < 1e5 && !unit;
    return !column.missing(row) && COMPARE[operator](!inFull && Math.abs(cell - bound) <= half ? bound : cell, bound);
  };
}

function expressionTest(data, word) {
  const found = word.startsWith('"') ? null : word.replace(/\s*(>=|<=|!=|=|<|>)=?\s*/u, "$1").match(EXPRESSION);
  if (!found) {
    const sought = unquoted(word).toLowerCase();
    return (row) => data.columns.some((one) => !one.numeric && one.text(row).toLowerCase().includes(sought));
  }
  const [, name, operator, value] = found;
  const column = data.column(name) ?? data.columns.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!column) {
    throw new Error(`There is no column ${name}. The list “Columns” names them all; quotes make it plain text: "${word}".`);
  }
  if (!unquoted(value)) throw new Error(`A value is missing after ${name}${operator}.`);
  return (column.numeric ? numberTest : textTest)(column, operator, value);
}

/** Returns the rows that pass all parts of `text`; throws an Error in words where it cannot be read. */
function filterRows(data, text) {
  const tests = filterWords(text).map((word) => expressionTest(data, word));
  const rows = [];
  for (let row = 0; row < data.count; row += 1) {
    if (tests.every((test) => test(row))) rows.push(row);
  }
  return rows;
}
