// The filter: plain words match any text of a run; NAME>=VALUE and the like match a column.

const EXPRESSION = /^([\p{L}_][\p{L}\p{N}_.]*)(>=|<=|!=|=|<|>)(.*)$/su;
const COMPARE = {
  "=": (a, b) => a === b || Math.abs(a - b) <= 1e-9 * Math.abs(b),
  "!=": (a, b) => !COMPARE["="](a, b),
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};

/** Splits at spaces, but not in quotes nor around an operator. */
function filterWords(text) {
  const words = text.match(/(?:"[^"]*"?|\s*(?:>=|<=|!=|=|<|>)\s*(?=\S)|[^\s"<>=!]+|[<>=!])+/gu) ?? [];
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
  return operator === "=" ? among : (row) => !among(row);
}

function numberTest(column, operator, value) {
  if (value.toLowerCase() === "missing" && (operator === "=" || operator === "!=")) {
    return (row) => column.missing(row) === (operator === "=");
  }
  const bound = Number(value);
  if (Number.isNaN(bound)) {
    throw new Error(`${column.name}${operator}${value}: “${value}” is not a number. Write one such as 0.9 or 1e20.`);
  }
  return (row) => COMPARE[operator](column.number(row), bound);
}

function expressionTest(data, word) {
  const found = word.startsWith('"') ? null : word.replace(/\s*(>=|<=|!=|=|<|>)\s*/u, "$1").match(EXPRESSION);
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
