// Every run: a filter, a sortable table in pages of 50, and the selection in words.

const PAGE_ROWS = 50;
// The loss comes first, so that a phone shows it without scrolling
const FIRST_COLUMNS = ["name", "L", "S", "N_total", "N_active", "D", "C", "E", "k", "L_se", "status", "study", "source", "tags", "seconds", "run_id"];

/** Rows in the table's order; missing values come last whichever way it is sorted. */
function sortedRows(data) {
  const column = data.column(state.sort.name);
  const rows = [...shownRows()];
  if (!column) return rows;
  const sign = state.sort.descending ? -1 : 1;
  const order = column.numeric
    ? (a, b) => column.number(a) - column.number(b)
    : (a, b) => column.text(a).localeCompare(column.text(b), "en", { numeric: true });
  return rows.sort((a, b) => column.missing(a) - column.missing(b) || (column.missing(a) ? 0 : sign * order(a, b)) || a - b);
}

/** Returns the run's id, or its number where the table has none. */
function runId(data, row) {
  return data.column("run_id")?.text(row) || `run ${row + 1}`;
}

/** Returns the run's name, which several may share, and the beginning of its id; the id where it has no name. */
function runName(data, row) {
  const name = data.column("name")?.text(row);
  return name ? `${name} (${runId(data, row).slice(0, 8)})` : runId(data, row);
}

/** The name of a run, or of the mean of several that differ in their seed alone. */
function setName(data, rows) {
  return `${rows.length > 1 ? `mean of ${rows.length} seeds, such as ` : ""}${runName(data, rows[0])}`;
}

function filterBox(data) {
  const error = h("p", { id: "filter-error", class: "error", role: "alert" });
  const input = h("input", {
    id: "filter", type: "search", autocomplete: "off", spellcheck: "false", "aria-describedby": "filter-help filter-error",
    placeholder: "S>=0.9 status=completed L<3", value: state.filter,
    oninput: () => {
      try {
        const rows = filterRows(data, input.value);
        error.textContent = "";
        input.removeAttribute("aria-invalid");
        change({ filter: input.value, rows });
      } catch (problem) {
        error.textContent = `${problem.message} The last filter that could be read stays in use.`;
        input.setAttribute("aria-invalid", "true");
      }
    },
  });
  const help = h("p", { id: "filter-help", class: "hint" },
    "Words match any text of a run; “S>=0.9”, “status=completed,diverged”, “L<3” or “seconds=missing” match a column. A run must match all of them. The plots of runs follow.");
  return h("div", { class: "filter" }, h("label", { for: "filter" }, "Filter"), input, error, help);
}

function selectionBar(data, table) {
  const count = h("p", { id: "count", role: "status", "aria-live": "polite" });
  const compare = button("Compare two selected runs", () => showDifferences(data, [...state.selected]));
  const only = tick("Show selected runs only", false, (onlySelected) => change({ onlySelected }));
  watch(["rows", "selected", "onlySelected"], () => {
    const hidden = [...state.selected].filter((row) => !state.rows.includes(row)).length;
    const beside = hidden ? `, ${hidden} of them hidden by the filter` : "";
    compare.disabled = state.selected.size !== 2;
    count.textContent = `${state.rows.length.toLocaleString("en")} of ${plural(data.count, "run")} match; ${plural(state.selected.size, "run")} selected${beside}.`;
  });
  return h("div", { class: "bar" }, count,
    button("Select all that match", () => select(state.rows)),
    button("Clear the selection", () => select([])),
    button("Copy run ids", (event) => copy(event.target, [...(state.selected.size ? state.selected : state.rows)].map((row) => runId(data, row)).join("\n"))),
    compare, only, table.chooser);
}

/** Shows the keys in which two runs' configurations differ, as `moelaws diff` does. */
function showDifferences(data, rows) {
  const configs = rows.map((row) => data.details[row].config ?? {});
  const keys = [...new Set(configs.flatMap(Object.keys))].sort();
  const values = keys.map((key) => [key, ...configs.map((config) => (config[key] === undefined ? "" : JSON.stringify(config[key])))]);
  const losses = rows.map((row) => data.column("L")?.number(row) ?? null);
  const differing = values.filter(([, one, other]) => one !== other);
  showDialog("What differs between two runs", plainTable(["", ...rows.map((row) => runName(data, row))], [["loss (nats/token)", ...losses], ...differing]),
    differing.length ? null : h("p", {}, "Their configurations do not differ, or are not at hand."));
}

async function copy(control, text) {
  const words = control.textContent;
  try {
    await navigator.clipboard.writeText(text);
    control.textContent = "Copied";
  } catch {
    control.textContent = "The browser does not let this page copy";
  }
  setTimeout(() => { control.textContent = words; }, 1500);
}

function columnChooser(data, names, changed) {
  const boxes = data.columns.map((column) => tick(columnTitle(column), names.has(column.name), (shown) => {
    if (shown) names.add(column.name);
    else names.delete(column.name);
    changed();
  }));
  return h("details", { class: "chooser" }, h("summary", {}, "Columns"), h("div", { class: "columns" }, boxes));
}

function headerCell(column) {
  const sorted = state.sort.name === column.name;
  const direction = state.sort.descending ? "descending" : "ascending";
  const press = () => change({ sort: { name: column.name, descending: sorted && !state.sort.descending } });
  const mark = h("span", { "aria-hidden": "true" }, sorted ? (state.sort.descending ? " ▼" : " ▲") : "");
  const unit = column.unit ? h("small", {}, ` (${column.unit})`) : null;
  return h("th", { scope: "col", class: column.numeric ? "number" : "", "aria-sort": sorted ? direction : "none" },
    button([column.name, mark, unit], press, { title: column.description, "data-column": column.name }));
}

function bodyRow(data, columns, row, tabbable) {
  const picked = state.selected.has(row);
  const box = h("input", { type: "checkbox", tabindex: -1, checked: picked, "aria-label": `Select ${runName(data, row)}`, onchange: () => toggle(row) });
  const cells = columns.map((column) => h("td", { class: column.numeric ? "number" : "", title: column.full(row) }, column.text(row)));
  return h("tr", { tabindex: tabbable ? 0 : -1, "data-row": row, "aria-selected": String(picked), class: picked ? "picked" : "" }, h("td", {}, box), cells);
}

/** Arrows, Home, End and Page keys move between runs; Enter opens a run; the space bar selects it. */
function tableKeys(event, turn) {
  const current = event.target.closest("tr[data-row]");
  if (!current || event.target !== current) return;
  const rows = [...current.parentElement.children];
  const at = rows.indexOf(current);
  const goal = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (event.key === "Enter") change({ chosen: Number(current.dataset.row) });
  else if (event.key === " ") toggle(Number(current.dataset.row));
  else if (event.key === "PageDown" || (goal === rows.length && goal > 0)) turn(1);
  else if (event.key === "PageUp" || goal === -1) turn(-1);
  else if (goal !== undefined) focusRow(rows, goal);
  else return;
  event.preventDefault();
}

function focusRow(rows, at, options) {
  if (!rows.length) return;
  for (const row of rows) row.tabIndex = -1;
  const row = rows[Math.max(0, Math.min(at, rows.length - 1))];
  row.tabIndex = 0;
  row.focus(options);
}

/** Returns the table's `element` and its `chooser` of columns. */
function runTable(data) {
  const head = h("tr");
  const body = h("tbody");
  const where = h("span");
  const names = new Set(FIRST_COLUMNS.filter((name) => data.column(name)));
  let first = 0;
  const draw = () => {
    const rows = sortedRows(data);
    if (first >= rows.length) first = 0;
    const columns = [...names].map(data.column);
    const focusedColumn = document.activeElement?.dataset.column;
    const focusedRow = body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.row : null;
    head.replaceChildren(h("th", { scope: "col" }, h("span", { class: "unseen" }, "Selected")), ...columns.map(headerCell));
    body.replaceChildren(...rows.slice(first, first + PAGE_ROWS).map((row, i) => bodyRow(data, columns, row, i === 0)));
    const last = Math.min(first + PAGE_ROWS, rows.length);
    where.textContent = rows.length ? `Runs ${first + 1} to ${last} of ${rows.length}` : "No run matches. Change the filter or clear it.";
    pager.hidden = rows.length <= PAGE_ROWS;
    if (focusedColumn) head.querySelector(`[data-column="${CSS.escape(focusedColumn)}"]`)?.focus();
    if (focusedRow) focusRow([...body.children], [...body.children].findIndex((one) => one.dataset.row === focusedRow), { preventScroll: true });
  };
  const turn = (pages) => {
    const goal = first + pages * PAGE_ROWS;
    if (goal < 0 || goal >= sortedRows(data).length) return;
    first = goal;
    draw();
    focusRow([...body.children], pages > 0 ? 0 : body.children.length - 1);
  };
  const pager = h("span", {}, button("Previous 50", () => turn(-1)), " ", button("Next 50", () => turn(1)));
  const pressed = (event) => {
    const row = event.target.closest("tr[data-row]");
    if (row && !event.target.closest("input")) change({ chosen: Number(row.dataset.row) });
  };
  const table = h("table", { id: "runs-table", role: "grid", "aria-multiselectable": "true", "aria-describedby": "table-help", onkeydown: (event) => tableKeys(event, turn), onclick: pressed },
    h("caption", { class: "unseen" }, "Runs"), h("thead", {}, head), body);
  watch(["rows", "selected", "onlySelected", "sort"], draw);
  return {
    element: h("div", {}, h("div", { class: "scroll runs", tabindex: -1 }, table), h("p", { class: "bar" }, where, " ", pager)),
    chooser: columnChooser(data, names, draw),
  };
}

function tableSection(data) {
  const table = runTable(data);
  const help = h("p", { id: "table-help", class: "hint" },
    "A click on a run, or Enter, opens it. Up and Down move between runs, the space bar selects, a heading sorts. Selected runs are highlighted in all plots.");
  return section("runs", "Every run", filterBox(data), selectionBar(data, table), table.element, help);
}
