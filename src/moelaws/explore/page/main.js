// The page's start: theme, sections, navigation and the address, which keeps section and run.

function watchTheme() {
  const control = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let own = null;
  const apply = () => {
    const theme = own ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    control.textContent = theme === "dark" ? "Light colours" : "Dark colours";
    change({ theme });
  };
  control.addEventListener("click", () => { own = state.theme === "dark" ? "light" : "dark"; apply(); });
  system.addEventListener("change", apply);
  apply();
}

const NAMES = { answers: "Answers", isoflop: "IsoFLOP", runs: "Runs", curves: "Training curves", scatter: "Two columns", parallel: "Parallel coordinates", laws: "Laws", studies: "Studies", words: "Words" };

/** The sections in their order: a plot follows the answers, that of two columns where no budget was swept. */
function sections(data) {
  const plots = data.isoflop.length ? [isoflopSection, tableSection, curvesSection, scatterSection] : [scatterSection, tableSection, curvesSection];
  return [answersSection, ...plots, parallelSection, lawsSection, studiesSection, wordsSection].map((part) => part(data));
}

/** Marks the section in view in the navigation; `seen(id)` is told. */
function watchSections(seen) {
  const list = document.getElementById("sections");
  const shown = [...document.querySelectorAll("main > section")].map((one) => one.id);
  const links = new Map(shown.map((id) => [id, h("a", { href: `#${id}` }, NAMES[id])]));
  list.append(...[...links.values()].map((link) => h("li", {}, link)));
  const current = (id) => {
    for (const [other, link] of links) {
      if (other === id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    const link = links.get(id);
    list.scrollTo({ left: link.offsetLeft - 24 });
    seen(id);
  };
  const watcher = new IntersectionObserver((entries) => {
    const entered = entries.filter((entry) => entry.isIntersecting);
    if (entered.length) current(entered.at(-1).target.id);
  }, { rootMargin: "-30% 0px -65% 0px" });
  for (const id of links.keys()) watcher.observe(document.getElementById(id));
}

function decoded(text) {
  try {
    return text && decodeURIComponent(text);
  } catch {
    return text; // a lone % stays what it is
  }
}

function readAddress() {
  const parts = location.hash.slice(1).split("&");
  const run = parts.find((part) => part.startsWith("run="))?.slice(4);
  return { run: decoded(run), place: decoded(parts.find((part) => !part.includes("="))) };
}

/** The address holds "#section&run=ID", so that a link shows a colleague the same. */
function watchAddress(data) {
  let place = readAddress().place ?? null;
  const open = () => {
    const { run, place: goal } = readAddress();
    if (goal) document.getElementById(goal)?.scrollIntoView();
    for (let row = 0; run && row < data.count; row += 1) {
      if (runId(data, row) === run) return change({ chosen: row });
    }
    return undefined;
  };
  const write = () => {
    const run = state.chosen === null ? null : `run=${encodeURIComponent(runId(data, state.chosen))}`;
    const hash = [place, run].filter(Boolean).join("&");
    history.replaceState(null, "", `#${hash}`);
  };
  watchSections((id) => { place = id; write(); });
  open();
  watch(["chosen"], () => { if (place || state.chosen !== null) write(); });
  window.addEventListener("hashchange", open);
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    document.getElementById("failure").textContent =
      "This browser cannot unpack the page's data, for it lacks DecompressionStream. Open the file in Chrome or Edge 80, Firefox 113 or Safari 16.4, or a newer one.";
    return;
  }
  watchTheme();
  const data = readData(await inflate("data"));
  const loss = data.column("L");
  // Runs that somebody else published are of other sizes: the filter, which the reader sees and can
  // clear, leaves them out at first.
  const sources = data.column("source")?.levels ?? [];
  const filter = sources.includes("trained") && sources.includes("imported") ? "source=trained" : "";
  change({ filter, rows: filterRows(data, filter), sort: { name: loss ? "L" : data.columns[0].name, descending: false } });
  showHeader(data);
  document.getElementById("main").replaceChildren(...sections(data));
  watchDetail(data);
  watchAddress(data);
}

start().catch((problem) => {
  document.getElementById("main").replaceChildren(h("p", { class: "banner", role: "alert" }, `The page's data could not be shown: ${problem.message}`));
  throw problem;
});
