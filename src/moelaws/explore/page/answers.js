// The first screen: what the tier answers, in words that other rules wrote.

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
  const rows = data.studies.flatMap((study) => study.claims.map((one) => [study.key, one.claim, `${VERDICTS[one.verdict] ?? "?"} ${one.verdict}`, one.numbers]));
  return rows.length ? [plainTable(["study", "claim", "verdict", "these runs"], rows, [], "Claims and verdicts")] : [];
}

/** Returns the section of answers, with the notes. */
function answersSection(data) {
  const notes = data.notes.map((text) => h("li", {}, text));
  const { columns, rows } = data.trained;
  return section("answers", "What the runs show",
    h("div", { class: "answers" },
      h("article", {}, h("h3", {}, "What was run"), rows.length ? plainTable(columns, rows, columns.map((_, i) => i > 3), "What was run") : h("p", {}, "No run of this tier is on record yet.")),
      data.pages.map((page) => pageArticle(page, page.href.endsWith("claims.md") ? claimsTable(data) : []))),
    notes.length ? h("aside", { class: "notes" }, h("h3", {}, "Notes"), h("ul", {}, notes)) : null,
    h("p", {}, h("a", { href: data.report }, "Snakemake's report: every figure, and how it was made"), " (snakemake writes it last)."));
}
