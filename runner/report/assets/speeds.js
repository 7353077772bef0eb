// The outcome of a solution in words, and its pairs as dots on a line.

const LIMITS = [1.25, 1.5, 2, 4, 8, 16, 64];

const isRight = (solution) => solution.judgement === "right";
const timesAsFast = (speed) => `${speed.speedup.toPrecision(3)}×`;
const isNoise = (speed) => speed.lowest <= 1 && speed.highest >= 1;

function speedText(speed) {
  if (!speed) return "";
  return `${timesAsFast(speed)} (${speed.lowest.toPrecision(3)} to ${speed.highest.toPrecision(3)}${isNoise(speed) ? ", noise" : ""})`;
}

const speedCell = (speed) => (speed ? h("span.speed", {}, speedText(speed)) : "");

// "✓ 2.19×", "✓ 0.98×, noise", "✗ wrong".
function solutionText(solution) {
  if (!isRight(solution)) return `✗ ${solution.judgement}`;
  if (!solution.speed) return "✓ right";
  return `✓ ${timesAsFast(solution.speed)}${solution.outcome === "noise" ? ", noise" : ""}`;
}

function solutionMark(solution) {
  return h("span.badge", { "data-outcome": solution.outcome, title: `solution: ${solution.reason || speedText(solution.speed) || "right, not measured"}` }, solutionText(solution));
}

function solutionFor(problem, node) {
  const stem = node.path.split("/").pop().replace(/\.py$/, "");
  return (problem.evaluation?.solutions || []).find((solution) => solution.name === stem);
}

// Names of solutions for components below a node.
function solutionsInside(problem, id) {
  if (!problem.evaluation) return [];
  if (!problem.inside) Object.defineProperty(problem, "inside", { value: new Map() });
  const { path } = problem.nodes[id];
  if (!problem.inside.has(path)) {
    const names = (problem.nodes[id].children || []).flatMap((child) => {
      const own = solutionFor(problem, problem.nodes[child]);
      return own ? [own.name, ...solutionsInside(problem, child)] : solutionsInside(problem, child);
    });
    problem.inside.set(path, [...new Set(names)]);
  }
  return problem.inside.get(path);
}

function solutionFact(problem, node) {
  const solution = solutionFor(problem, node);
  return [solutionMark(solution), solution.reason ? ` ${solution.reason}` : ` ${speedText(solution.speed)}`, " ",
    h("a.inline", { href: `#/solutions?q=${encodeURIComponent(solution.name)}` }, "all about it")];
}

// The range that a page's dots share: as far as the limits of its speed-ups go.
function rangeOf(speeds) {
  const most = Math.max(1, ...speeds.filter(Boolean).map((speed) => Math.max(speed.highest, 1 / speed.lowest)));
  return LIMITS.find((limit) => limit >= most) || LIMITS[LIMITS.length - 1];
}

const quotients = (speed) => speed.before_s.map((before, n) => before / speed.after_s[n]);

// One dot for each pair, the limits of the speed-up as a bar, the speed-up as a stroke; the line in the middle is equal speed.
function pairDots(speed, range) {
  if (!speed) return "";
  const place = (x) => `${(50 + 50 * Math.max(-1, Math.min(1, Math.log(x) / Math.log(range)))).toFixed(1)}%`;
  return h("span.pairs", { role: "img", "aria-label": `${several(speed.before_s.length, "pair")}, ${speedText(speed)}` },
    h("b", { style: `left:${place(speed.lowest)};right:calc(100% - ${place(speed.highest)})` }),
    quotients(speed).map((x) => h("i", { style: `left:${place(x)}` })),
    h("u", { style: `left:${place(speed.speedup)}` }));
}

// Times of both sides, pair by pair.
function pairsChart(speed, before, after) {
  const chart = h("div.chart", { role: "img", "aria-label": `${several(speed.before_s.length, "pair")}: ${before} ${seconds(speed.before_median_s)}, ${after} ${seconds(speed.after_median_s)}, ${speedText(speed)}` });
  const points = (name) => ({ show: true, size: 6, fill: colour(name), stroke: colour(name) });
  const series = (label, name, dash) => ({ label, stroke: colour(name), width: 1, dash, points: points(name), value: (self, v) => (v === null || v === undefined ? "-" : seconds(v)) });
  requestAnimationFrame(() => plot(chart, {
    height: 220,
    scales: { x: { time: false }, y: { range: (self, low, high) => [0, high * 1.08] } },
    axes: [{ label: `pairs, ${several(speed.calls, "call")} each` }, { size: 76, values: (self, ticks) => ticks.map((tick) => (tick ? seconds(tick) : "0")) }],
    series: [{ label: "pair" }, series(before, "--off", [4, 4]), series(after, "--accent")],
  }, [speed.before_s.map((x, n) => n + 1), speed.before_s, speed.after_s]));
  return chart;
}
