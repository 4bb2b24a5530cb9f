// Colours of the plots: Okabe and Ito's series colours (they differ for colour-blind readers too),
// cividis for numbers; each series differs also in its dash and marker.

const SERIES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5a5a5a"],
  dark: ["#56b4e9", "#e69f00", "#00b887", "#cc79a7", "#f0e442", "#e8743b", "#c8c8c8"],
};
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "triangle-down", "star"];
const GLYPHS = { circle: "●", square: "■", diamond: "◆", "triangle-up": "▲", x: "✖", cross: "✚", "triangle-down": "▼", star: "★" };
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];

/** Colour, dash and symbol of series `i`: 7 colours, 5 dashes and 8 symbols, so that pairs differ long. */
function seriesStyle(i) {
  const colors = SERIES[state.theme];
  return { color: colors[i % colors.length], dash: DASHES[i % DASHES.length], symbol: SYMBOLS[i % SYMBOLS.length] };
}

/** Cividis without the end that would vanish on the page's background. */
function sequential() {
  return state.theme === "dark" ? CIVIDIS.slice(3) : CIVIDIS.slice(0, 9);
}

function colorscale() {
  const colors = sequential();
  return colors.map((color, i) => [i / (colors.length - 1), color]);
}

/** Whether numbers are told apart better on a log scale: all positive and over a factor 20. */
function isWide(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (Number.isNaN(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > 0 && high > 20 * low;
}

/** A page's colour by the name of its CSS variable. */
function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
