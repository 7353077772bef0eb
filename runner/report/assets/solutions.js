// Better kernels: what each solution and each model with solutions gained, and what was refused.

// "1 of 64 workloads has a better kernel, 2 of 16 fusions have a better version: 41.0% of level3's time."
function solvedSentence() {
  const { better, shares, measure } = RUN.solved;
  const counts = [...LEVELS].reverse().filter((level) => better[level]).map((level) => [level, better[level]]).map(([level, [some, all]]) =>
    `${some} of ${level === "kernel" ? several(all, "workload") : several(all, level)} ${some === 1 ? "has" : "have"} a better ${level === "kernel" ? "kernel" : "version"}`);
  const parts = Object.entries(shares).filter(([, share]) => share).map(([level, share]) => `${share < 1e-3 ? "less than 0.1%" : percent(share)} of ${level}'s ${measure}`);
  return `${counts.join(", ")}${parts.length ? `: ${parts.join(", ")}` : ""}.`;
}

async function solutions() {
  const evaluations = await unpack("solutions");
  const rows = evaluations.flatMap((evaluation) => evaluation.solutions.map((solution) => ({ ...solution, label: RUN.problems[evaluation.problem].label })));
  const { solutions: all, right, models } = RUN.solved;
  const machines = new Set(evaluations.map(({ machine }) => `${machine.processor}, ${several(machine.threads, "thread")}, torch ${machine.torch}`));
  const notes = evaluations.flatMap((evaluation) => evaluation.notes.map((note) => `${RUN.problems[evaluation.problem].label}: ${note}`));
  return h("div", {},
    h("h1", {}, "Solutions"),
    [...(isSingle() ? RUN.notes : []), ...notes].map((note) => h("p.note", {}, note)),
    h("p", {}, `${right} of ${several(all, "solution")} ${right === 1 ? "is" : "are"} right, in ${several(models, "model")}. ${solvedSentence()}`),
    eachSolution(rows), eachModel(evaluations), refused(rows, evaluations),
    h("p.dim", {}, `Measured on ${[...machines].join("; ")}, in pairs: both sides get the same new inputs, in random order. A dot is a pair, the bar the speed-up's limits of 95% confidence. If they include 1, the difference is noise.`));
}

function eachSolution(rows) {
  const range = rangeOf(rows.flatMap((row) => [row.speed, row.measured]));
  const speed = (name, key, wide, about) => ({ name, about, right: true, wide, value: (s) => s[key]?.speedup ?? null, cell: (s) => speedCell(s[key]) });
  const listed = table({ caption: "Solutions", file: "solutions", rows, order: ["speed-up", true], key: "sort", open: solutionBelow, columns: [
    { name: "solution", value: (s) => s.name },
    { name: "model", wide: true, value: (s) => s.label, cell: (s) => h("a.label", { href: problemLink(s.label, s.node) }, breakable(s.label)) },
    { name: "verdict", value: (s) => s.outcome, cell: (s) => h("span.badge", { "data-outcome": s.judgement }, `${isRight(s) ? "✓" : "✗"} ${s.judgement}`) },
    { name: "places", right: true, wide: true, value: (s) => s.places },
    speed("speed-up", "speed", false, "How many times as fast as the component, with its limits"),
    { name: `pairs, ÷${range} to ×${range}`, wide: true, value: (s) => s.speed?.speedup ?? null, csv: (s) => (s.speed ? quotients(s.speed).map((x) => x.toPrecision(3)).join(" ") : ""), cell: (s) => pairDots(s.speed, range) },
    ...(rows.some((s) => s.compiled) ? [speed("compiled", "compiled", true, "torch.compile of the component")] : []),
    { name: "share", about: "Of the model's time", right: true, wide: true, value: (s) => s.share ?? null, cell: (s) => (s.share === undefined ? "" : percent(s.share)) },
    { name: "predicted", about: "Speed-up of the model that follows", right: true, wide: true, value: (s) => s.predicted ?? null, cell: (s) => (s.predicted === undefined ? "" : `${s.predicted.toFixed(3)}×`) },
    speed("in the model", "measured", true, "The original against the model with this solution alone"),
  ] });
  const search = h("input", { type: "search", placeholder: "Filter by name, model or verdict", "aria-label": "Filter solutions by name, model or verdict" });
  const count = h("output", { "aria-live": "polite" });
  function filter() {
    const matches = matcher(search.value);
    const some = rows.filter((s) => matches(`${s.name} ${s.label} ${s.judgement} ${s.outcome} ${s.level}`.toLowerCase()));
    listed.show(some);
    count.textContent = some.length === rows.length ? several(rows.length, "row") : `${some.length} of ${several(rows.length, "row")}`;
  }
  search.addEventListener("input", () => { filter(); remember({ q: search.value }); });
  search.value = readAddress().state.get("q") || "";
  filter();
  return h("section", { "aria-labelledby": "each" }, h("h2", { id: "each" }, "Each solution, in each model"),
    h("div.controls", { role: "search" }, search, count, listed.csv), listed.element);
}

// A solution's pairs, and each comparison of its outputs.
function solutionBelow(s) {
  const charts = [["The component and the solution", s.speed, "component", "solution"], ["The model without and with it", s.measured, "original", "with it"]]
    .filter(([, speed]) => speed).map(([title, speed, before, after]) => h("div", {}, h("h3", {}, `${title}: ${speedText(speed)}`), pairsChart(speed, before, after)));
  const number = (x) => (x === undefined ? "" : String(three(x)));
  const compared = h("table", {}, h("thead", {}, h("tr", {}, ["compared on", "verdict", "error, tolerances", "the component's own", "largest difference"].map((name, i) => h(i > 1 ? "th.right" : "th", { scope: "col" }, name)))),
    h("tbody", {}, s.comparisons.map((c) => h("tr", {},
      h("td", {}, c.place === "own inputs" ? c.place : h("a", { href: problemLink(s.label, c.place) }, c.place)), h("td", {}, c.judgement),
      ...[c.tolerances, c.eager_tolerances, c.max_diff].map((x) => h("td.right", {}, number(x)))))));
  return h("div.evidence", {}, s.reason ? h("p", {}, s.reason) : null,
    h("p.dim", {}, s.node === undefined ? "The tree has no such component any more. " : [h("a.inline", { href: problemLink(s.label, s.node) }, "the component and its code"), ", "], `solution ${s.file}`),
    charts.length ? h("div.charts", {}, charts) : null,
    h("details", { open: !charts.length }, h("summary", {}, several(s.comparisons.length, "comparison")), h("div.scroll", { tabindex: "0", role: "group", "aria-label": "Comparisons" }, compared)));
}

function eachModel(evaluations) {
  const rows = evaluations.filter((evaluation) => evaluation.model).map((evaluation) => ({ label: RUN.problems[evaluation.problem].label, last: evaluation.model.comparisons.at(-1), ...evaluation.model }));
  if (!rows.length) return null;
  const range = rangeOf(rows.map((row) => row.speed));
  const listed = table({ caption: "Models with solutions", file: "models-with-solutions", rows, order: ["speed-up", true], columns: [
    { name: "model", value: (m) => m.label, cell: (m) => h("a", { href: problemLink(m.label) }, m.label) },
    { name: "solutions", right: true, wide: true, value: (m) => m.last.solutions.length },
    { name: "verdict", value: (m) => m.last.judgement, cell: (m) => h("span.badge", { "data-outcome": m.last.judgement }, `${isRight(m.last) ? "✓" : "✗"} ${m.last.judgement}`) },
    { name: "drift", about: "Largest difference of the output, relative to its largest value", right: true, wide: true, value: (m) => m.last.drift ?? null, cell: (m) => (m.last.drift === undefined ? "" : m.last.drift.toExponential(1)) },
    { name: "before", right: true, wide: true, value: (m) => m.speed?.before_median_s ?? null, cell: (m) => (m.speed ? seconds(m.speed.before_median_s) : "") },
    { name: "after", right: true, wide: true, value: (m) => m.speed?.after_median_s ?? null, cell: (m) => (m.speed ? seconds(m.speed.after_median_s) : "") },
    { name: "speed-up", right: true, value: (m) => m.speed?.speedup ?? null, cell: (m) => speedCell(m.speed) },
    { name: `pairs, ÷${range} to ×${range}`, wide: true, value: (m) => m.speed?.speedup ?? null, cell: (m) => pairDots(m.speed, range) },
    ...(rows.some((m) => m.compiled || m.compiled_failure) ? [{ name: "compiled", about: "torch.compile of the original", right: true, wide: true, value: (m) => m.compiled?.speedup ?? null, cell: (m) => speedCell(m.compiled) || m.compiled_failure || "" }] : []),
  ] });
  return h("section", { "aria-labelledby": "models" }, h("div.bar", {}, h("h2", { id: "models" }, "Models with all their right solutions"), listed.csv), listed.element);
}

function refused(rows, evaluations) {
  const bad = rows.filter((row) => !isRight(row));
  const models = evaluations.flatMap((evaluation) => (evaluation.model?.comparisons || []).filter((c) => !isRight(c)).map((c) => ({ ...c, label: RUN.problems[evaluation.problem].label })));
  const item = (outcome, name, label, node, reason, rest) => h("li", {}, h("span.badge", { "data-outcome": outcome }, outcome), " ", name, " in ",
    h("a.inline", { href: problemLink(label, node) }, label), rest, h("div.why", {}, reason));
  const failing = (s) => {
    const places = s.comparisons.filter((c) => !isRight(c)).length;
    return places ? `, ${places} of ${several(s.comparisons.length, "comparison")}` : "";
  };
  return h("section", { "aria-labelledby": "refused" }, h("h2", { id: "refused" }, bad.length + models.length ? `Refused, and why: ${bad.length + models.length}` : "Nothing was refused"),
    h("ul.changes", {}, bad.map((s) => item(s.judgement, s.name, s.label, s.node, s.reason, failing(s))),
      models.map((c) => item(c.judgement, `the model with ${c.solutions.join(", ")}`, c.label, "root", c.reason, ""))));
}

// The line at a problem's top.
function solvedFact(data, label) {
  const { solutions: rows, model } = data.evaluation;
  const right = rows.filter(isRight).length;
  const last = model?.comparisons.at(-1);
  const gained = !last ? "" : isRight(last) ? `, the model with ${right === 1 ? "it" : "them"} ${model.speed ? speedText(model.speed) : "is right"}` : `, the model with ${right === 1 ? "it" : "them"} is ${last.judgement}`;
  return [h("a.inline", { href: `#/solutions?q=${encodeURIComponent(label)}` }, `${right} of ${rows.length} right`), gained];
}
