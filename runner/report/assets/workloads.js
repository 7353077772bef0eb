// The catalogue: how few workloads are how much of the work, the code of each, and where it is used.

const SHAPES_AT_ONCE = 40, FEW_SHAPES = 8;

async function workloads() {
  const all = await unpack("workloads");
  if (!all.listed.length) return h("div", {}, h("h1", {}, "Workloads"), h("p.note", {}, "There is no decomposition here whose kernels can be listed."));
  const measured = all.totals.time > 0;
  const part = (key, w) => (key === "time" && !w.time ? null : all.totals[key] ? (key === "time" ? w.time[0] : w[key]) * w.instances / all.totals[key] : 0);
  const largest = (key) => all.listed.reduce((most, w) => Math.max(most, part(key, w)), 1e-12);
  const share = (key, name, wide) => {
    const most = largest(key);
    return { name, about: `Share of all instances' ${key === "flops" ? "FLOPs" : key}`, right: true, wide, value: (w) => part(key, w), cell: (w) => (part(key, w) === null ? "-" : barred(percent(part(key, w)), part(key, w) / most)) };
  };
  const solutionOf = await solutionsByWorkload(all);
  const columns = [
    { name: "workload", value: (w) => w.name },
    { name: "tensors", wide: true, value: (w) => `${tensors(w.inputs, w.input_dtypes)} → ${w.outputs.map(shape).join(", ")}`, cell: (w) => h("span.dim", {}, `${tensors(w.inputs, w.input_dtypes)} → ${w.outputs.map(shape).join(", ")}`) },
    { name: "uses", right: true, wide: true, value: (w) => w.instances },
    { name: "models", right: true, value: (w) => w.uses.length },
    ...(RUN.solved ? [{ name: "solution", wide: true, value: (w) => solutionOf(w)?.outcome ?? null, cell: (w) => (solutionOf(w) ? solutionMark(solutionOf(w)) : "") }] : []),
    { name: "FLOPs", right: true, wide: true, value: (w) => w.flops, cell: (w) => flops(w.flops) },
    { name: "bytes", right: true, wide: true, value: (w) => w.bytes, cell: (w) => size(w.bytes) },
    { name: "FLOP/B", right: true, wide: true, value: (w) => (w.bytes ? w.flops / w.bytes : 0), cell: (w) => (w.bytes ? w.flops / w.bytes : 0).toFixed(1) },
    ...(measured ? [
      { name: "time", about: `Median of one instance on ${RUN.measured_on}`, right: true, value: (w) => (w.time ? w.time[0] : null), cell: (w) => (w.time ? seconds(w.time[0]) : h("span.dim", { title: w.untimed }, w.untimed ? "failed" : "")) },
      { name: "FLOP/s", right: true, wide: true, value: (w) => (w.time ? w.flops / w.time[0] : null), cell: (w) => (w.time ? perSecond(w.flops / w.time[0], "FLOP") : "") },
      { name: "bytes/s", right: true, wide: true, value: (w) => (w.time ? w.bytes / w.time[0] : null), cell: (w) => (w.time ? perSecond(w.bytes / w.time[0], "B") : "") },
      share("time", "of time"), share("flops", "of FLOPs", true),
    ] : [share("flops", "of FLOPs"), share("bytes", "of bytes", true)]),
  ];
  const listed = table({ caption: "Workloads", columns, rows: all.listed, order: [measured ? "of time" : "of FLOPs", true], open: (w) => workloadBelow(w, all, solutionOf(w)), key: "sort", file: "workloads" });
  const search = h("input", { type: "search", placeholder: "Filter by name, operation, shape or model", "aria-label": "Filter workloads by name, operation, shape or model" });
  const count = h("output", { "aria-live": "polite" });
  let texts = null;
  function filter() {
    texts ||= all.listed.map((w) => `${workloadText(w, all.families)} ${solutionOf(w) ? `solution ${solutionOf(w).judgement} ${solutionOf(w).outcome}` : ""}`);
    const matches = matcher(search.value);
    const some = search.value.trim() ? all.listed.filter((w, i) => matches(texts[i])) : all.listed;
    listed.show(some);
    count.textContent = some.length === all.listed.length ? several(some.length, "workload") : `${some.length.toLocaleString("en")} of ${several(all.listed.length, "workload")}`;
  }
  search.addEventListener("input", () => { filter(); remember({ q: search.value }); });
  search.value = readAddress().state.get("q") || "";
  filter();
  const families = table({ caption: "Families", file: "families", rows: all.families, order: ["share", true], open: (f) => shapesTable(f, all), columns: [
    { name: "family", value: (f) => f.name },
    { name: "workloads", right: true, value: (f) => f.workloads },
    { name: "uses", right: true, wide: true, value: (f) => f.instances },
    { name: "models", right: true, wide: true, value: (f) => f.problems },
    { name: "share", right: true, value: (f) => f.share, cell: (f) => barred(percent(f.share), f.share / (all.families[0]?.share || 1)) },
  ] });
  const chart = h("div.chart", { role: "img", "aria-label": curveSentence(all.curves) });
  requestAnimationFrame(() => drawCurves(chart, all.curves));
  const kernels = all.listed.map((w) => ({ name: w.name, flops: w.flops, bytes: w.bytes, time: w.time && w.time[0], uses: w.uses }));
  return h("div", {},
    h("h1", {}, "Workloads"),
    h("p", {}, `${several(all.listed.length, "unique workload")} in ${all.families.length} families, ${several(all.instances, "instance")} in ${several(all.problems, "model")}. ${curveSentence(all.curves)}`),
    RUN.solved ? h("p", {}, h("a", { href: "#/solutions" }, solvedSentence())) : null,
    h("div.pair", {},
      h("section", { "aria-labelledby": "curve" }, h("h2", { id: "curve" }, "How few are how much"), chart),
      h("section", { "aria-labelledby": "roofline" }, h("h2", { id: "roofline" }, measured ? "Roofline" : "Work by intensity"),
        roofline(kernels, (kernel) => { location.hash = problemLink(RUN.problems[kernel.uses[0][0]].label, kernel.uses[0][1]); }))),
    h("section", { "aria-labelledby": "each" }, h("h2", { id: "each" }, `Each, by share of ${measured ? "time" : "FLOPs"}`),
      h("div.controls", { role: "search" }, search, count, listed.csv), listed.element),
    h("section", { "aria-labelledby": "families" }, h("div.bar", {}, h("h2", { id: "families" }, "Families: one operation, any size"), families.csv), families.element));
}

function workloadText(w, families) {
  const dims = (shapes) => shapes.map((s) => s.join("x")).join(" ");
  return `${w.name} ${w.operation} ${families[w.family].name} ${dims(w.inputs)} ${dims(w.outputs)} ${dims(w.weights)} ${w.uses.map(([n]) => RUN.problems[n].label).join(" ")}`.toLowerCase();
}

// Where a workload is used, and its code, which is in the data of the first problem that uses it.
async function workloadBelow(w, all, solution) {
  const [number, id] = w.uses[0];
  const [data] = await Promise.all([unpack(`problem-${number}`), library("highlight")]);
  const path = data.nodes[id].path;
  return h("div.opened", {},
    h("div", {}, h("h3", {}, `used by ${several(w.uses.length, "model")}`),
      h("ul.uses", {}, w.uses.map(([n, place, count]) => h("li", {}, h("a", { href: problemLink(RUN.problems[n].label, place) }, RUN.problems[n].label), count > 1 ? ` ×${count}` : "")))),
    h("div", {},
      solution ? h("p", {}, "solution ", solutionMark(solution), " ", solution.reason || speedText(solution.speed), " ", h("a.inline", { href: `#/solutions?q=${encodeURIComponent(solution.name)}` }, "all about it")) : null,
      shapesTable(all.families[w.family], all, w),
      codeView([{ name: path, text: data.files[path] }]).element));
}

// The sizes at which a family's kernel runs, smaller ones first.
function shapesTable(family, all, current) {
  const members = all.listed.filter((w) => all.families[w.family] === family).sort((a, b) => a.flops - b.flops || a.bytes - b.bytes || inOrder.compare(a.name, b.name));
  const constants = [...new Set(members.flatMap((w) => Object.keys(w.sizes || {})))];
  const measured = members.some((w) => w.time);
  const names = ["workload", ...constants, "inputs", "weights", "outputs"];
  const figures = ["uses", ...(measured ? ["time"] : [])];
  const place = members.indexOf(current);
  const first = Math.max(0, Math.min(place - SHAPES_AT_ONCE / 2, members.length - SHAPES_AT_ONCE));
  const some = members.slice(first, first + SHAPES_AT_ONCE);
  return h("details.family", { open: current === undefined || (members.length > 1 && members.length <= FEW_SHAPES) },
    h("summary", {}, `${several(members.length, "size")} of ${family.name}${some.length < members.length ? `; ${some.length} are shown` : ""}`),
    h("div.scroll", { tabindex: "0", role: "group", "aria-label": "Sizes of the family" }, h("table", {},
      h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)), figures.map((name) => h("th.right", { scope: "col" }, name)))),
      h("tbody", {}, some.map((w) => h("tr", { "aria-current": w === current ? "true" : undefined },
        h("td", {}, w === current ? breakable(w.name) : h("a", { href: problemLink(RUN.problems[w.uses[0][0]].label, w.uses[0][1]) }, breakable(w.name))),
        constants.map((name) => h("td", {}, String(w.sizes?.[name] ?? ""))),
        [w.inputs, w.weights, w.outputs].map((shapes) => h("td", {}, shapes.map(shape).join(", "))),
        h("td.right", {}, String(w.instances)), measured ? h("td.right", {}, w.time ? seconds(w.time[0]) : "") : null))))));
}

// A function that gives the solution of a workload: the fastest, where models differ.
async function solutionsByWorkload(all) {
  if (!RUN.solved) return () => undefined;
  const ranks = ["broken", "wrong", "right", "slower", "noise", "faster"];
  const byNode = new Map();
  for (const evaluation of await unpack("solutions")) for (const s of evaluation.solutions) byNode.set(`${evaluation.problem} ${s.node}`, s);
  const best = new Map(all.listed.map((w) => [w, w.uses.map(([n, node]) => byNode.get(`${n} ${node}`)).filter(Boolean)
    .sort((a, b) => ranks.indexOf(b.outcome) - ranks.indexOf(a.outcome))[0]]));
  return (w) => best.get(w);
}
