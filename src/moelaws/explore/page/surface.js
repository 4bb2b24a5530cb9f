// A law as a table over its variables' grids: looked up between the grid's points.

/** Where `value` lies on an ascending grid, as a fractional index, clipped to its ends. */
function gridIndex(variable, value) {
  const { grid, log } = variable;
  const scale = log ? Math.log : (one) => one;
  let i = grid.findIndex((point) => point > value) - 1;
  if (i === -2) i = grid.length - 2;
  i = Math.max(0, Math.min(i, grid.length - 2));
  if (grid.length === 1) return 0;
  const share = (scale(value) - scale(grid[i])) / (scale(grid[i + 1]) - scale(grid[i]));
  return Math.max(0, Math.min(grid.length - 1, i + share));
}

/** The inverse of `gridIndex`. */
function gridValue(variable, index) {
  const { grid, log } = variable;
  const i = Math.max(0, Math.min(Math.floor(index), grid.length - 2));
  const share = index - i;
  if (grid.length === 1) return grid[0];
  return log ? grid[i] * (grid[i + 1] / grid[i]) ** share : grid[i] + share * (grid[i + 1] - grid[i]);
}

/** Multilinear in the variables (or their logarithms) and in ln of the response where it is a log one. */
function lookUp(law, values, indices) {
  const into = law.response.log ? Math.log : (one) => one;
  let corners = [{ at: 0, weight: 1 }];
  law.variables.forEach(({ grid }, d) => {
    const i = Math.max(0, Math.min(Math.floor(indices[d]), grid.length - 2));
    const share = indices[d] - i;
    corners = corners.flatMap(({ at, weight }) => [
      { at: at * grid.length + i, weight: weight * (1 - share) },
      { at: at * grid.length + i + 1, weight: weight * share },
    ].filter((corner) => corner.weight > 0));
  });
  const sum = corners.reduce((total, { at, weight }) => total + weight * into(values[at]), 0);
  return law.response.log ? Math.exp(sum) : sum;
}

function lookUpAll(law, indices) {
  return { mean: lookUp(law, law.mean, indices), low: lookUp(law, law.low, indices), high: lookUp(law, law.high, indices) };
}

/** Whether a value is outside of the range that the fitted runs span. */
function isOutside(variable, value) {
  const [low, high] = variable.fitted;
  const slack = 1e-6 * Math.max(Math.abs(low), Math.abs(high));
  return value < low - slack || value > high + slack;
}

/** Whether a grid's steps are so uneven that its axis is better drawn by index (S near 1). */
function isUneven({ grid, log }) {
  if (log || grid.length < 3) return false;
  const steps = grid.slice(1).map((value, i) => value - grid[i]);
  return Math.max(...steps) > 3 * Math.min(...steps);
}
