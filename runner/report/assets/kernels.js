// The kernels of one problem: what each costs, in time where it was measured, and its share.

// Work of a node and all below it: FLOPs, bytes, seconds, and how many kernel instances have no time.
function workOf(problem, id) {
  const cache = problem.work || new Map();
  if (!problem.work) Object.defineProperty(problem, "work", { value: cache });
  if (cache.has(id)) return cache.get(id);
  const node = problem.nodes[id];
  const total = { flops: 0, bytes: 0, time: 0, untimed: 0 };
  if (node.level === "kernel") {
    const time = problem.times[node.path];
    Object.assign(total, { flops: node.flops, bytes: node.bytes, time: time ? time[0] : 0, untimed: time ? 0 : 1 });
  }
  for (const child of node.children || []) {
    const part = workOf(problem, child);
    for (const key of Object.keys(total)) total[key] += part[key];
  }
  cache.set(id, total);
  return total;
}

// Unique kernels: {path, id, name, operation, instances, flops, bytes, time} of one instance each.
function uniqueKernels(problem) {
  const byPath = new Map();
  for (const [id, node] of Object.entries(problem.nodes)) {
    if (node.level !== "kernel") continue;
    const known = byPath.get(node.path);
    if (known) { known.instances += 1; continue; }
    const time = problem.times[node.path];
    byPath.set(node.path, { path: node.path, id, name: node.path.split("/").pop().replace(/\.py$/, ""), operation: node.operation || "", instances: 1, flops: node.flops, bytes: node.bytes, time: time ? time[0] : null });
  }
  return [...byPath.values()];
}

// The kernel that all its instances make the slowest; without times, the one with the most FLOPs.
function heaviest(kernels) {
  const key = kernels.some((k) => k.time) ? "time" : "flops";
  return kernels.reduce((most, k) => ((k[key] || 0) * k.instances > (most[key] || 0) * most.instances ? k : most), kernels[0]);
}

function kernelsSection(problem, label) {
  const kernels = uniqueKernels(problem);
  const total = workOf(problem, "root");
  const measured = total.time > 0;
  const part = (key) => (k) => (k[key] === null ? null : total[key] ? k[key] * k.instances / total[key] : 0);
  const share = (key, name, wide) => {
    const most = Math.max(1e-12, ...kernels.map(part(key)));
    return { name, right: true, wide, value: part(key), cell: (k) => (part(key)(k) === null ? "-" : barred(percent(part(key)(k)), part(key)(k) / most)) };
  };
  const columns = [
    { name: "kernel", value: (k) => k.name, cell: (k) => h("a", { href: problemLink(label, k.id) }, breakable(k.name)) },
    { name: "operation", wide: true, value: (k) => k.operation },
    { name: "uses", right: true, value: (k) => k.instances },
    ...(problem.evaluation ? [{ name: "solution", value: (k) => solutionFor(problem, k)?.outcome ?? null, cell: (k) => (solutionFor(problem, k) ? solutionMark(solutionFor(problem, k)) : "") }] : []),
    { name: "FLOPs", right: true, wide: true, value: (k) => k.flops, cell: (k) => flops(k.flops) },
    { name: "bytes", right: true, wide: true, value: (k) => k.bytes, cell: (k) => size(k.bytes) },
    ...(measured ? [
      { name: "time", about: "Median of one instance", right: true, value: (k) => k.time, cell: (k) => (k.time ? seconds(k.time) : "") },
      { name: "FLOP/s", right: true, wide: true, value: (k) => (k.time ? k.flops / k.time : null), cell: (k) => (k.time ? perSecond(k.flops / k.time, "FLOP") : "") },
      { name: "bytes/s", right: true, wide: true, value: (k) => (k.time ? k.bytes / k.time : null), cell: (k) => (k.time ? perSecond(k.bytes / k.time, "B") : "") },
      share("time", "of time"), share("flops", "of FLOPs", true),
    ] : [share("flops", "of FLOPs"), share("bytes", "of bytes", true)]),
  ];
  const listed = table({ caption: "Kernels", columns, rows: kernels, order: [measured ? "of time" : "of FLOPs", true], file: `${label.replace("/", "-")}-kernels` });
  return h("div.pair.kernels", {},
    h("section", { "aria-labelledby": "kernels" }, h("div.bar", {}, h("h2", { id: "kernels" }, `Kernels, by share of ${measured ? "time" : "FLOPs"}`), listed.csv), listed.element),
    h("section", { "aria-labelledby": "roof" }, h("h2", { id: "roof" }, measured ? "Roofline" : "Work by intensity"),
      roofline(kernels, (kernel) => { location.hash = problemLink(label, kernel.id); })));
}

// "4.50 ms, 31.0% of the time; 120 GFLOP/s, 34 GB/s, 61% of the roof" for a kernel; a sum for what holds kernels.
function timeText(problem, id) {
  const own = workOf(problem, id), total = workOf(problem, "root");
  if (!total.time) return null;
  if (!own.time) return "not measured";
  const node = problem.nodes[id];
  const parts = [`${own.untimed ? "≥ " : ""}${seconds(own.time)}`];
  if (id !== "root") parts.push(`${percent(own.time / total.time)} of the problem's time`);
  if (node.level === "kernel") {
    parts.push(perSecond(node.flops / own.time, "FLOP"), perSecond(node.bytes / own.time, "B"));
    const peak = RUN.roofs && RUN.roofs.flops_per_s[Object.values(node.output_dtypes)[0]];
    if (peak && node.bytes) {
      const roof = node.flops ? Math.min(peak, node.flops / node.bytes * RUN.roofs.bytes_per_s) : 0;
      parts.push(`${percent(roof ? node.flops / own.time / roof : node.bytes / own.time / RUN.roofs.bytes_per_s)} of the roof`);
    }
  } else if (own.untimed) parts.push(`${own.untimed} of its kernels not measured`);
  return parts.join(", ");
}
