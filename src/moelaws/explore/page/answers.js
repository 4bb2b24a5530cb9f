// The first screen: what the tier answers, in words.

const SOURCES = {
  simulated: "Simulated data: the losses on this page were drawn from a law with noise, and no model was trained for them.",
  imported: "Imported data: the losses on this page come from a published or given table, and were not trained here.",
  mixed: "Mixed data: some losses on this page were simulated or imported; the column source says which, and each plot and figure names its own.",
};

/** "trained", or a badge in words for data that nobody trained here. */
function sourceBadge(source) {
  return source && source !== "trained" ? h("span", { class: "badge" }, `${source} data`) : null;
}

function showHeader(data) {
  document.getElementById("made").textContent =
    `Tier ${data.tier}, ${plural(data.count, "run")}. Made ${data.made} by moelaws ${data.version}.`;
  const banner = document.getElementById("source");
  banner.textContent = SOURCES[data.source] ?? "";
  banner.hidden = !banner.textContent;
}

function answer(one) {
  const rows = one.table;
  return h("article", {},
    h("h3", {}, one.heading),
    (one.paragraphs ?? []).map((text) => h("p", {}, text)),
    one.points?.length ? h("ul", {}, one.points.map((text) => h("li", {}, text))) : null,
    rows ? plainTable(rows.columns, rows.rows, rows.numeric, one.heading) : null);
}

/** Returns the section of answers, with the notes and the links to the other pages. */
function answersSection(data) {
  const links = (data.links ?? []).map((link) => h("li", {}, h("a", { href: link.href }, link.text)));
  const notes = (data.notes ?? []).map((text) => h("li", {}, text));
  return section("answers", "What the runs say",
    h("div", { class: "answers" }, data.answers.map(answer)),
    notes.length ? h("aside", { class: "notes" }, h("h3", {}, "Notes"), h("ul", {}, notes)) : null,
    links.length ? h("p", {}, "Pages beside this one:") : null,
    links.length ? h("ul", { class: "links" }, links) : null);
}
