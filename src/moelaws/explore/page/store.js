// What the reader has chosen, in one place: panels read `state`, call `change`, and are told.

const state = {
  filter: "", // as typed
  rows: [], // those that pass the filter, ascending
  selected: new Set(),
  onlySelected: false,
  sort: { name: "L", descending: false },
  chosen: null, // the run whose detail is open
  theme: "light",
};
const subscribers = [];

/** Calls `told` after each change of one of `keys`, and once now. */
function watch(keys, told) {
  subscribers.push({ keys, told });
  told();
}

function change(update) {
  Object.assign(state, update);
  for (const { keys, told } of subscribers) {
    if (keys.some((key) => key in update)) told();
  }
}

/** Selects `rows`; with `add`, besides those selected before. */
function select(rows, add = false) {
  change({ selected: new Set(add ? [...state.selected, ...rows] : rows) });
}

function toggle(row) {
  const selected = new Set(state.selected);
  if (!selected.delete(row)) selected.add(row);
  change({ selected });
}

/** Groups the indices of `rows` whose runs differ in their seed alone, if `averaged`; else each is alone. */
function seedGroups(data, rows, averaged) {
  const groups = new Map();
  for (const [i, row] of rows.entries()) {
    const { seed, ...others } = (averaged && data.details[row]?.config) || { alone: i };
    const key = JSON.stringify(others);
    groups.set(key, [...(groups.get(key) ?? []), i]);
  }
  return [...groups.values()];
}

/** The rows that pass the filter and, where the reader asks for it, are selected. */
function shownRows() {
  return state.onlySelected ? state.rows.filter((row) => state.selected.has(row)) : state.rows;
}
