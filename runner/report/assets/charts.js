// Charts: the share of the first workloads, the roofline, and runs by date.

const plots = new Set();

async function plot(chart, options, data) {
  await library("uplot");
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const drawn = new uPlot({
    width: Math.max(200, chart.clientWidth), height: 300, ...options,
    axes: options.axes.map((own) => ({ ...axis, ...own })),
  }, data, chart);
  plots.add(drawn);
  return drawn;
}

function resizePlots() {
  for (const drawn of plots) {
    if (drawn.root.isConnected) drawn.setSize({ width: drawn.root.parentElement.clientWidth, height: drawn.height });
    else { drawn.destroy(); plots.delete(drawn); }
  }
}

// "The first 12 are half of the FLOPs, 40 are 90%."
function curveSentence(curves) {
  return Object.entries(curves).map(([name, points]) => {
    const needed = [0.5, 0.9].map((share) => (points.find(([, sum]) => sum >= share - 1e-4) || [points.length])[0]);
    return `The first ${needed[0]} are half of the ${name}, ${needed[1]} are 90%.`;
  }).join(" ");
}

function drawCurves(chart, curves) {
  const names = Object.keys(curves);
  const counts = [...new Set(names.flatMap((name) => curves[name].map(([n]) => n)))].sort((a, b) => a - b);
  const lines = names.map((name) => {
    const known = new Map(curves[name]);
    return counts.map((n) => (known.has(n) ? 100 * known.get(n) : null));
  });
  const looks = [["--layer", undefined], ["--fusion", [6, 4]], ["--model", [2, 3]]];
  return plot(chart, {
    scales: { x: { time: false, distr: 3, range: [1, Math.max(2, counts[counts.length - 1])] }, y: { range: [0, 100] } },
    axes: [
      { label: "workloads, those with the largest share first" },
      { values: (self, ticks) => ticks.map((tick) => `${tick}%`) },
    ],
    series: [
      { label: "workloads" },
      ...names.map((name, i) => ({ label: name, stroke: colour(looks[i][0]), width: 2, spanGaps: true, dash: looks[i][1], points: { show: false },
        value: (self, v) => (v === null || v === undefined ? "-" : `${v.toFixed(1)}%`) })),
    ],
  }, [counts, ...lines]);
}

// Each kernel at its intensity: what it reaches below the machine's roofs where it was measured, else its FLOPs.
// kernels: [{name, flops, bytes, time}], of one instance each.
function roofline(kernels, onPick) {
  const measured = Boolean(RUN.roofs) && kernels.some((kernel) => kernel.time);
  const points = kernels.filter((k) => k.flops > 0 && k.bytes > 0 && (!measured || k.time))
    .map((kernel) => ({ kernel, x: kernel.flops / kernel.bytes, y: measured ? kernel.flops / kernel.time : kernel.flops }))
    .sort((a, b) => a.x - b.x);
  const left = kernels.length - points.length;
  const said = h("p.reading", { "aria-live": "off" }, "Point at a kernel to read it, click it to open it.");
  const chart = h("div.chart", { role: "img", "aria-label": measured
    ? `Roofline of ${several(points.length, "kernel")} on ${RUN.measured_on}; the table has the same figures`
    : `FLOPs of ${several(points.length, "kernel")} by intensity; the table has the same figures` });
  const element = h("div", {},
    h("p.dim", {}, measured
      ? `Measured on ${RUN.measured_on}. Roofs: ${Object.entries(RUN.roofs.flops_per_s).map(([dtype, n]) => `${perSecond(n, "FLOP")} (${DTYPES[dtype] || dtype} matrix product)`).join(", ")}, ${perSecond(RUN.roofs.bytes_per_s, "B")} (copy).`
      : "Not measured: `kdrun workloads --measure` adds times and the machine's roofs.",
    left ? ` ${several(left, "kernel")} ${left === 1 ? "has" : "have"} no FLOPs${measured ? " or no time" : ""} and no point here.` : ""),
    chart, said);
  if (!points.length) return element;
  requestAnimationFrame(() => drawRoofline(chart, points, measured, said, onPick));
  return element;
}

function reading({ kernel, x, y }, measured) {
  const speeds = kernel.time ? `, ${seconds(kernel.time)}, ${perSecond(y, "FLOP")}, ${perSecond(kernel.bytes / kernel.time, "B")}` : `, ${flops(y)}`;
  return `${kernel.name}: ${three(x)} FLOP/B${measured ? speeds : `, ${flops(y)}, ${size(kernel.bytes)}`}`;
}

// Ticks of a logarithmic axis.
function powersOfTen(self, axis, low, high) {
  const [from, to] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const step = Math.max(1, Math.ceil((to - from) / 8));
  return Array.from({ length: Math.max(0, Math.floor((to - from) / step) + 1) }, (_, i) => 10 ** (from + i * step));
}

async function drawRoofline(chart, points, measured, said, onPick) {
  const peaks = measured ? Object.entries(RUN.roofs.flops_per_s) : [];
  const low = points[0].x / 2, high = points[points.length - 1].x * 2;
  const ridges = peaks.map(([, peak]) => peak / RUN.roofs.bytes_per_s).filter((x) => x > low && x < high);
  const xs = [low, high, ...ridges, ...points.map((point) => point.x)];
  const order = xs.map((x, i) => i).sort((a, b) => xs[a] - xs[b]);
  const inOrderOf = (values) => order.map((i) => values[i]);
  const ys = inOrderOf([null, null, ...ridges.map(() => null), ...points.map((point) => point.y)]);
  const roofs = peaks.map(([, peak]) => inOrderOf(xs.map((x) => Math.min(peak, x * RUN.roofs.bytes_per_s))));
  const all = [...points.map((point) => point.y), ...roofs.flat()];
  const range = [10 ** Math.floor(Math.log10(Math.min(...all))), 10 ** Math.ceil(Math.log10(Math.max(...all) * 1.2))];
  const drawn = await plot(chart, {
    legend: { show: peaks.length > 0, live: false },
    cursor: { points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: false, distr: 3, range: [low, high] }, y: { distr: 3, range } },
    axes: [
      { label: "intensity, FLOP per byte", splits: powersOfTen, values: (self, ticks) => ticks.map((tick) => (tick === null ? "" : `${three(tick)}`)) },
      { label: measured ? "reached FLOP/s" : "FLOPs", size: 86, labelGap: 4, splits: powersOfTen, values: (self, ticks) => ticks.map((tick) => (tick === null ? "" : flops(tick).replace(".0 ", " "))) },
    ],
    series: [
      { label: "FLOP/B" },
      { label: "kernels", paths: () => null, stroke: colour("--layer"), points: { show: true, size: 8, fill: colour("--layer"), stroke: colour("--paper") } },
      ...peaks.map(([dtype]) => ({ label: `roof, ${DTYPES[dtype] || dtype}`, stroke: colour("--accent"), width: 1.5, points: { show: false } })),
    ],
  }, [inOrderOf(xs), ys, ...roofs]);
  let near = null;
  drawn.over.addEventListener("mousemove", (event) => {
    const frame = drawn.over.getBoundingClientRect();
    const [px, py] = [event.clientX - frame.left, event.clientY - frame.top];
    const away = (point) => Math.hypot(drawn.valToPos(point.x, "x") - px, drawn.valToPos(point.y, "y") - py);
    near = points.reduce((best, point) => (away(point) < away(best) ? point : best));
    if (away(near) > 40) near = null;
    said.textContent = near ? reading(near, measured) : "Point at a kernel to read it, click it to open it.";
    drawn.over.style.cursor = near ? "pointer" : "default";
  });
  drawn.over.addEventListener("click", () => { if (near) onPick(near.kernel); });
  chart.dataset.points = points.length;
}
