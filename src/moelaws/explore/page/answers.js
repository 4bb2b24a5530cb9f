// What the tier answers, in words: a few sentences first, and at the end what other rules wrote.

const SOURCES = {
  simulated: "Simulated data: the losses on this page were drawn from a law with noise, and no model was trained for them.",
  imported: "Imported data: the losses on this page come from a published or given table, and were not trained here.",
};

/** "trained", or a badge in words for data that nobody trained here. */
function sourceBadge(source) {
  return source && source !== "trained" ? h("span", { class: "badge" }, `${source} data`) : null;
}

function showHeader(data) {
  document.getElementById("made").textContent =
    `Tier ${data.tier}, ${plural(data.count, "run")}. Made ${data.made} by moelaws ${data.version}.`;
  const banner = document.getElementById("source");
  const others = data.source.split("+").filter((source) => source !== "trained" && source !== "none");
  banner.textContent = SOURCES[data.source] ?? (others.length ? `Mixed data: some losses on this page were ${others.join(", others were ")}; the column source says which, and each plot and figure names its own.` : "");
  banner.hidden = !banner.textContent;
}

/** A page as HTML, which was made of Markdown in which markup is text; its sections fold. */
function pageArticle({ html, href }, more = []) {
  const article = h("article");
  article.innerHTML = html;
  for (const table of article.querySelectorAll("table")) {
    table.classList.add("plain");
    for (const cell of table.querySelectorAll("td")) if (cell.textContent.length > 16) cell.classList.add("long");
    const box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" });
    table.replaceWith(box);
    box.append(table);
  }
  for (const [i, title] of article.querySelectorAll("h4").entries()) {
    const part = h("details", { open: i === 0 }, h("summary", {}, title.textContent));
    while (title.nextElementSibling && title.nextElementSibling.tagName !== "H4") part.append(title.nextElementSibling);
    title.replaceWith(part);
  }
  article.append(...more, h("p", {}, h("a", { href }, `The whole page: ${href}`)));
  return article;
}

function claimsTable(data) {
  const rows = data.studies.flatMap((study) => study.claims.map((one) => [study.key, one.claim, `${VERDICTS[one.verdict] ?? "?"} ${one.verdict}`, one.effect]));
  return rows.length ? [plainTable(["study", "claim", "verdict", "effect"], rows, [], "Claims and verdicts")] : [];
}

const ORIGINS = { trained: "were trained on", simulated: "have simulated losses, for", imported: "were published, trained on" };

/** "40k to 10M", of the known values in a column. */
function span(values, words) {
  const known = values.filter((value) => !Number.isNaN(value));
  const ends = [(a, b) => Math.min(a, b), (a, b) => Math.max(a, b)].map((least) => known.reduce(least, known[0]));
  return known.length ? [...new Set(ends.map(words))].join(" to ") : "unknown";
}

/** The lowest point of a series' fitted curve, with the loss's interval and the side on which it is only a bound; null for fewer than three sizes. */
function optimumOf({ C, S, x, curve, optimum }) {
  if (new Set(x).size < 3) return null;
  const at = curve.mean.indexOf(Math.min(...curve.mean.filter((one) => one !== null)));
  return { C, S, ...optimum, x: curve.x[at], bound: at === 0 ? "below" : at === curve.x.length - 1 ? "above" : "" };
}

/** The fitted optimum of the largest budget beside that of dense models; where none was fitted, the least measured losses. */
function bestSentence(data, done, one) {
  const fitted = (one?.series ?? []).map(optimumOf).filter(Boolean);
  const C = Math.max(...fitted.map((own) => own.C));
  const known = ["L", "S", "N_total", "N_active"].map((name) => data.column(name));
  if (fitted.length) {
    const least = (among) => among.filter((own) => own.C === C).sort((a, b) => a.L - b.L)[0];
    const [best, dense] = [least(fitted), least(fitted.filter((own) => own.S === 0))];
    const words = ({ L, low, high, bound }, unit = "", level = "") => `${bound ? "at most " : ""}${L.toFixed(3)}${unit} (${low === null ? "no interval" : `${level}${low.toFixed(3)} to ${high.toFixed(3)}`})`;
    const sparsity = best.S === undefined ? "" : ` and sparsity ${Number(best.S.toPrecision(3))}`;
    const beside = best.S > 0 && dense ? `; that of dense models is ${words(dense)}` : "";
    return [`At ${formatNumber(C)} FLOPs the fitted optimum lies ${best.bound ? `at or ${best.bound}` : "near"} ${shortNumber(Number(best.x.toPrecision(2)))} ${one.x.name.includes("active") ? "active " : ""}parameters${sparsity}: ${words(best, " nats a token", `${Math.round(100 * one.level)} % interval `)}${beside}.`];
  }
  if (!known.every(Boolean)) return [];
  const [L, S, N, active] = known.map((column) => column.number);
  const rows = done.filter((row) => known.every((column) => !column.missing(row))).sort((a, b) => L(a) - L(b));
  const [best, dense] = [rows[0], rows.filter((row) => S(row) === 0)];
  if (best === undefined) return [];
  const sparse = S(best) > 0 ? `, ${shortNumber(active(best))} of them active (sparsity ${Number(S(best).toPrecision(3))})` : "";
  const beside = sparse && dense.length ? `; that of ${plural(dense.length, "dense run")} is ${L(dense[0]).toFixed(3)}` : "";
  return [`No optimum was fitted: the lowest loss measured in ${plural(rows.length, "run")} is ${L(best).toFixed(3)} nats a token, of a model of ${shortNumber(N(best))} parameters${sparse}${beside}.`];
}

/** What was trained, what came out, and what was judged; runs of others count only where there are no own ones. */
function sentences(data) {
  const completed = [...Array(data.count).keys()].filter((row) => data.column("status")?.text(row) === "completed");
  const of = (source) => completed.filter((row) => data.column("source")?.text(row) === source);
  const source = Object.keys(ORIGINS).find((name) => of(name).length);
  const done = source ? of(source) : completed;
  const swept = data.isoflop.find((one) => one.source === source);
  const series = swept?.series ?? [];
  const sizes = (name) => span(done.map((row) => data.column(name)?.number(row) ?? NaN), shortNumber);
  const budgets = series.length ? `, with budgets of ${span(series.map((one) => one.C), formatNumber)} FLOPs` : "";
  const trained = done.length ? [`${plural(done.length, "model")} of ${sizes("N_total")} parameters ${ORIGINS[source] ?? "have"} ${sizes("D")} tokens${budgets}.`, ...bestSentence(data, done, swept)] : ["No run of this tier is completed yet."];
  const published = (study) => study.source === "imported";
  const counts = [...judged(data.studies.filter((study) => !published(study)), "these runs"), ...judged(data.studies.filter(published), "published runs")].join("; ");
  return counts ? [...trained, `${counts[0].toUpperCase()}${counts.slice(1)}.`] : trained;
}

/** How many claims the runs support and contradict, and leave open; none where nothing was judged. */
function judged(studies, runs) {
  const verdicts = studies.flatMap((study) => study.claims.map((claim) => claim.verdict));
  const [agree, differ] = ["supported", "not supported"].map((verdict) => verdicts.filter((own) => own === verdict).length);
  return verdicts.length ? [`${runs} support ${agree} of ${plural(verdicts.length, "claim")} and contradict ${differ}`] : [];
}

/** The first screen: what the runs show, in a few sentences; a plot follows. */
function answersSection(data) {
  const notes = data.notes.length ? h("p", { class: "hint" }, h("a", { href: "#words" }, plural(data.notes.length, "note")), " on what is missing or damaged.") : null;
  return section("answers", "What the runs show", sentences(data).map((text) => h("p", { class: "answer" }, text)), notes);
}

/** The last section: the pages that other rules wrote, and notes. */
function wordsSection(data) {
  const notes = data.notes.map((text) => h("li", {}, text));
  return section("words", "More in words",
    h("div", { class: "answers" }, data.pages.map((page) => pageArticle(page, page.href.endsWith("claims.md") ? claimsTable(data) : []))),
    notes.length ? h("aside", { class: "notes" }, h("h3", {}, "Notes"), h("ul", {}, notes)) : null,
    h("p", {}, h("a", { href: data.report }, "Snakemake's report: every figure, and how it was made"), " (snakemake writes it last)."));
}
