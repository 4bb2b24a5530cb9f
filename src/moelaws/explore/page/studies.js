// Figures, paper tables and claims of each study.

const VERDICTS = { supported: "✓", "not supported": "✗", "cannot tell": "?" };

function fileLinks(one) {
  const links = [];
  if (one.csv) links.push(h("a", { href: one.csv }, `${one.name}: numbers (CSV)`));
  if (one.pdf) links.push(h("a", { href: one.pdf }, `${one.name}: drawing (PDF)`));
  return h("p", { class: "files" }, links.flatMap((link, i) => (i ? [" · ", link] : [link])));
}

function figureCard(figure, study) {
  const picture = figure.image
    ? h("button", { type: "button", class: "picture", title: "Show in full size", onclick: () => showDialog(`${figure.name} of ${study.title}`, h("img", { src: figure.image, alt: figure.caption }), h("p", {}, figure.caption)) }, h("img", { src: figure.image, alt: figure.caption, loading: "lazy", decoding: "async" }))
    : h("p", {}, "The picture is not at hand.");
  return h("figure", { id: `figure-${study.key}-${figure.name}` }, picture, h("figcaption", {}, h("strong", {}, `${figure.name}. `), figure.caption), fileLinks(figure));
}

function claimItem(claim, study) {
  const link = claim.figure && study.figures.some((figure) => figure.name === claim.figure)
    ? h("a", { href: `#figure-${study.key}-${claim.figure}` }, `See ${claim.figure}.`) : null;
  return h("li", { class: `claim ${claim.verdict.replaceAll(" ", "-")}` },
    h("p", {}, h("strong", { class: "verdict" }, `${VERDICTS[claim.verdict] ?? "?"} ${claim.verdict}`), ` ${claim.title} `, h("small", {}, `(${claim.paper})`)),
    h("p", {}, claim.claim),
    h("p", {}, claim.says, " ", link),
    h("details", {}, h("summary", {}, "Numbers and rule"), h("p", {}, `On these runs: ${claim.numbers}`), h("p", {}, claim.rule)));
}

function studyPart(study) {
  const tables = study.tables.map((table) => h("details", {},
    h("summary", {}, h("strong", {}, `${table.name}. `), table.caption),
    plainTable(table.columns, table.rows, table.columns.map((_, i) => table.rows.every((row) => typeof row[i] === "number" || row[i] === null)), table.caption), fileLinks(table)));
  const none = !study.figures.length && !study.tables.length && !study.claims.length;
  return h("article", { id: `study-${study.key}`, class: "study" },
    h("h3", {}, study.title, " ", sourceBadge(study.source)),
    none ? h("p", {}, "Nothing of this study is drawn or judged yet.") : null,
    study.claims.length ? [h("h4", {}, "Claims, judged on these runs"), h("ul", { class: "claims" }, study.claims.map((claim) => claimItem(claim, study)))] : null,
    study.figures.length ? [h("h4", {}, "Figures"), h("div", { class: "figures" }, study.figures.map((figure) => figureCard(figure, study)))] : null,
    study.tables.length ? [h("h4", {}, "Tables"), tables] : null);
}

function studiesSection(data) {
  const links = data.studies.map((study) => h("li", {}, h("a", { href: `#study-${study.key}` }, study.title)));
  return section("studies", "Studies: claims, figures and tables", links.length > 1 ? h("ul", { class: "contents" }, links) : null, data.studies.map(studyPart));
}
