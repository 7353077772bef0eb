// Runs compared: what passes no longer, what changed, what is slower; and a trend where there are more than two.

async function changes() {
  const all = await unpack("changes");
  const [first, second] = all.runs.slice(-2);
  const both = all.problems.filter((p) => p.a && p.b);
  const broken = both.filter((p) => p.a.status === "passed" && p.b.status !== "passed");
  const mended = both.filter((p) => p.a.status !== "passed" && p.b.status === "passed");
  const differing = both.filter((p) => p.tree);
  const list = (id, title, some, item) => h("section", { "aria-labelledby": id }, h("h2", { id }, `${title}: ${some.length}`),
    some.length ? h("ul.changes", {}, some.map((p) => h("li", {}, h("a", { href: problemLink(p.label) }, p.label), " ", item(p)))) : h("p.dim", {}, "none"));
  const only = (side) => all.problems.filter((p) => !p[side === "a" ? "b" : "a"]).map((p) => p.label);
  const lines = [["a", first], ["b", second]].filter(([side]) => only(side).length)
    .map(([side, run]) => h("p", {}, `Only in ${run.title}: ${only(side).join(", ")}.`));
  return h("div.changes-page", {},
    h("h1", {}, `${first.title} → ${second.title}`),
    all.runs.length > 2 ? trend(all.runs) : null,
    sides(first, second),
    h("div.pair", {},
      list("broken", "Passed before, and no longer", broken, (p) => [badge(p.b.status), h("div.why", {}, p.b.reason)]),
      list("mended", "Passes now, and did not before", mended, (p) => [badge(p.a.status), " before"])),
    ...lines,
    list("trees", "Trees and kernels that changed", differing, treeChange),
    figures(both, first, second),
    all.kernels ? kernelTimes(all.kernels, first, second) : null);
}

function sides(first, second) {
  const lines = [
    ["date", (r) => (r.date ? r.date.slice(0, 16).replace("T", " ") : "")], ["problems passed", (r) => `${r.passed} of ${r.problems}`],
    ["unique kernels", (r) => r.kernels.toLocaleString("en")], ["kernel instances", (r) => r.instances.toLocaleString("en")],
    ["time of work", (r) => seconds(r.seconds)], ["most memory", (r) => size(r.memory)],
    ["kernel time, measured", (r) => (r.kernel_s ? `${seconds(r.kernel_s)} (${r.measured_on})` : "not measured")],
    ["versions", (r) => Object.entries(r.versions).map(([name, version]) => `${name} ${version}`).join(", ")],
  ];
  return h("section", { "aria-labelledby": "sides" }, h("h2", { id: "sides" }, "Side by side"), h("div.scroll", { tabindex: "0", role: "group", "aria-labelledby": "sides" }, h("table", {},
    h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col" }, first.title), h("th", { scope: "col" }, second.title))),
    h("tbody", {}, lines.map(([name, text]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, text(first)), h("td", {}, text(second))))))));
}

function treeChange({ tree }) {
  const counts = (name, some) => some.map(([level, a, b]) => `${level} ${name} ${a} → ${b}`);
  const parts = [tree.source ? "the problem's file differs" : null, ...counts("files", tree.files), ...counts("instances", tree.levels),
    tree.rewritten.length ? `same tensors, other code: ${tree.rewritten.join(", ")}` : null].filter(Boolean);
  return [h("span.dim", {}, parts.join("; ")), tree.kernels.length ? h("details", {}, h("summary", {}, several(tree.kernels.length + tree.more, "kernel")),
    h("ul", {}, tree.kernels.map(([name, a, b]) => h("li", {}, `${name}: ${a} → ${b}`)), tree.more ? h("li", {}, `and ${tree.more} more`) : null)) : null];
}

// Before, after, and their ratio, marked where it is beyond the noise.
function figureColumns(key, name, text, beyond, first, second) {
  const of = (side) => (p) => p[side]?.[key] || null;
  const ratio = (p) => (of("a")(p) && of("b")(p) ? of("b")(p) / of("a")(p) : null);
  return [
    { name: `${name} ${first.title}`, right: true, wide: true, value: of("a"), cell: (p) => (of("a")(p) ? text(of("a")(p)) : "") },
    { name: `${name} ${second.title}`, right: true, wide: true, value: of("b"), cell: (p) => (of("b")(p) ? text(of("b")(p)) : "") },
    { name: `${name} ×`, right: true, value: ratio, cell: (p) => ratioMark(ratio(p), beyond(p)) },
  ];
}

function ratioMark(ratio, beyond) {
  if (ratio === null) return "";
  return h("span", { class: beyond ? "beyond" : "within", "data-worse": String(ratio > 1), title: beyond ? "beyond the noise" : "within the noise" }, `${beyond ? (ratio > 1 ? "▲ " : "▼ ") : ""}${ratio.toFixed(2)}`);
}

function figures(both, first, second) {
  const slower = both.filter((p) => p.time_beyond).length, larger = both.filter((p) => p.memory_beyond).length;
  const listed = table({ caption: "Time and memory", file: "time-and-memory", rows: both, order: ["time ×", true], key: "sort", columns: [
    { name: "problem", value: (p) => p.label, cell: (p) => h("a", { href: problemLink(p.label) }, p.label) },
    ...figureColumns("seconds", "time", seconds, (p) => p.time_beyond, first, second),
    ...figureColumns("memory", "memory", size, (p) => p.memory_beyond, first, second),
  ] });
  return h("section", { "aria-labelledby": "figures" }, h("div.bar", {}, h("h2", { id: "figures" }, "Time and memory of the work"), listed.csv),
    h("p", {}, `Beyond the noise: the time of ${several(slower, "problem")}, the memory of ${several(larger, "problem")}. The noise is how far the ratios of all problems spread around their median.`), listed.element);
}

function kernelTimes(kernels, first, second) {
  const listed = table({ caption: "Measured kernels", file: "kernel-times", rows: kernels, order: ["×", true], columns: [
    { name: "kernel", value: (k) => k.name }, { name: "uses", right: true, wide: true, value: (k) => k.instances },
    { name: first.title, right: true, value: (k) => k.a, cell: (k) => seconds(k.a) }, { name: second.title, right: true, value: (k) => k.b, cell: (k) => seconds(k.b) },
    { name: "×", right: true, value: (k) => k.b / k.a, cell: (k) => ratioMark(k.b / k.a, k.beyond) },
  ] });
  return h("section", { "aria-labelledby": "kernel-times" }, h("div.bar", {}, h("h2", { id: "kernel-times" }, `Measured kernels: ${kernels.filter((k) => k.beyond).length} of ${kernels.length} beyond the noise`), listed.csv),
    h("p", {}, "Beyond the noise: the medians differ by more than 5%, and the fastest run of the slower is slower than the other's median."), listed.element);
}

function trend(runs) {
  const chart = h("div.chart", { role: "img", "aria-label": "Passed problems and time of work by date; the table below has the same figures" });
  const dated = runs.filter((run) => run.date);
  requestAnimationFrame(() => plot(chart, {
    height: 240,
    scales: { "%": { range: [0, 100] }, s: { range: (self, low, high) => [0, high * 1.1] } },
    axes: [{}, { scale: "%", values: (self, ticks) => ticks.map((tick) => `${tick}%`) }, { scale: "s", side: 1, size: 70, grid: { show: false }, values: (self, ticks) => ticks.map((tick) => (tick ? seconds(tick) : "0")) }],
    series: [{ label: "date" }, { label: "passed", scale: "%", stroke: colour("--good"), width: 2, points: { show: true, size: 7 }, value: (self, v) => (v === null ? "-" : `${v.toFixed(1)}%`) },
      { label: "time of work", scale: "s", stroke: colour("--layer"), width: 2, dash: [6, 4], points: { show: true, size: 7 }, value: (self, v) => (v === null ? "-" : seconds(v)) }],
  }, [dated.map((run) => Date.parse(run.date) / 1000), dated.map((run) => (100 * run.passed) / Math.max(1, run.problems)), dated.map((run) => run.seconds)]));
  const listed = table({ caption: "Runs by date", file: "runs", rows: runs, order: ["date", false], columns: [
    { name: "run", value: (r) => r.title }, { name: "date", value: (r) => r.date, cell: (r) => (r.date ? r.date.slice(0, 16).replace("T", " ") : "") },
    { name: "passed", right: true, value: (r) => r.passed, cell: (r) => `${r.passed} of ${r.problems}` }, { name: "kernels", right: true, wide: true, value: (r) => r.kernels },
    { name: "time", right: true, value: (r) => r.seconds, cell: (r) => seconds(r.seconds) }, { name: "memory", right: true, wide: true, value: (r) => r.memory, cell: (r) => size(r.memory) },
    { name: "kernel time", right: true, wide: true, value: (r) => r.kernel_s, cell: (r) => (r.kernel_s ? seconds(r.kernel_s) : "") },
  ] });
  return h("section", { "aria-labelledby": "trend" }, h("div.bar", {}, h("h2", { id: "trend" }, "Trend"), listed.csv), chart, listed.element);
}
