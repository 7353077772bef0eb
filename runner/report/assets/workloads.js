// The catalogue: how few workloads are how much of the work, and where each is used.

async function workloads() {
  const all = await unpack("workloads");
  if (!all.count) return h("p.note", {}, "There is no decomposition here whose kernels can be listed.");
  const columns = [
    { name: "workload", value: (w) => w.name, cell: (w) => h("details", {}, h("summary", {}, w.name), used(w)) },
    { name: "tensors", wide: true, value: (w) => tensors(w.inputs, w.input_dtypes), cell: (w) => h("span.dim", {}, `${tensors(w.inputs, w.input_dtypes)} → ${w.outputs.map(shape).join(", ")}`) },
    { name: "uses", right: true, wide: true, value: (w) => w.instances },
    { name: "models", right: true, value: (w) => w.uses.length },
    { name: "FLOPs", right: true, wide: true, value: (w) => w.flops, cell: (w) => flops(w.flops) },
    { name: "bytes", right: true, wide: true, value: (w) => w.bytes, cell: (w) => size(w.bytes) },
    { name: "FLOP/B", right: true, wide: true, value: (w) => w.intensity, cell: (w) => w.intensity.toFixed(1) },
    { name: "share", right: true, value: (w) => w.share, cell: (w) => barred(percent(w.share), w.share / (all.listed[0].share || 1)) },
  ];
  const listed = table("Workloads", columns, all.listed, ["share", true]);
  const search = h("input", { type: "search", placeholder: "Filter by name or operation", "aria-label": "Filter workloads" });
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    listed.show(all.listed.filter((w) => words.every((word) => `${w.name} ${w.operation}`.toLowerCase().includes(word))));
  });
  const families = table("Families", [
    { name: "family", value: (f) => f.name },
    { name: "workloads", right: true, value: (f) => f.workloads },
    { name: "uses", right: true, wide: true, value: (f) => f.instances },
    { name: "models", right: true, wide: true, value: (f) => f.problems },
    { name: "share", right: true, value: (f) => f.share, cell: (f) => barred(percent(f.share), f.share / (all.families[0]?.share || 1)) },
  ], all.families, ["share", true]);
  const chart = h("div.chart", { role: "img", "aria-label": spoken(all.curves) });
  requestAnimationFrame(() => draw(chart, all.curves));
  return h("div", {},
    h("h1", {}, "Workloads"),
    h("p", {}, `${several(all.count, "unique workload")} in ${all.families.length} families, ${several(all.instances, "instance")} in ${several(all.problems, "model")}. ${spoken(all.curves)}`),
    h("section", { "aria-labelledby": "curve" }, h("h2", { id: "curve" }, "How few are how much"), chart),
    h("section", { "aria-labelledby": "each" }, h("h2", { id: "each" }, all.count > all.listed.length ? `The first ${all.listed.length} by share of FLOPs` : "Each, by share of FLOPs"),
      h("div.controls", {}, search), listed.element),
    h("section", { "aria-labelledby": "families" }, h("h2", { id: "families" }, "Families: one operation, any size"), families.element));
}

function used(workload) {
  return h("ul.uses", {}, workload.uses.map(([label, place, n]) =>
    h("li", {}, h("a", { href: problemLink(label, place) }, label), n > 1 ? ` ×${n}` : "")));
}

function spoken(curves) {
  return Object.entries(curves).filter(([, points]) => points.length).map(([name, points]) => {
    const needed = [0.5, 0.9].map((share) => (points.find(([, c]) => c >= share - 1e-4) || [points.length])[0]);
    return `The first ${needed[0]} are half of the ${name}, ${needed[1]} are 90%.`;
  }).join(" ");
}

let plot = null;
function draw(chart, curves) {
  const names = Object.keys(curves);
  const counts = [...new Set(names.flatMap((name) => curves[name].map(([n]) => n)))].sort((a, b) => a - b);
  const series = names.map((name) => {
    const known = new Map(curves[name]);
    return counts.map((n) => (known.has(n) ? 100 * known.get(n) : null));
  });
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  plot = new uPlot({
    width: chart.clientWidth, height: 280,
    scales: { x: { time: false, distr: 3, range: [1, counts[counts.length - 1]] }, y: { range: [0, 100] } },
    axes: [
      { ...axis, label: "workloads, those with the largest share first" },
      { ...axis, values: (self, ticks) => ticks.map((tick) => `${tick}%`) },
    ],
    series: [
      { label: "workloads" },
      ...names.map((name, i) => ({ label: name, stroke: colour(i ? "--fusion" : "--layer"), width: 2, spanGaps: true, dash: i ? [6, 4] : undefined, points: { show: false },
        value: (self, v) => (v === null || v === undefined ? "-" : `${v.toFixed(1)}%`) })),
    ],
    legend: { live: true },
  }, [counts, ...series], chart);
}
