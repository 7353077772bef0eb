// Solutions for a problem's components: what was said of each, its times, and the pairs as dots.

const SPEEDS = [0.25, 4];

function speedText(speed) {
  if (!speed) return "";
  const noise = speed.lowest <= 1 && speed.highest >= 1;
  return `${speed.speedup.toPrecision(3)} (${speed.lowest.toPrecision(3)} to ${speed.highest.toPrecision(3)}${noise ? ", noise" : ""})`;
}

// One dot for each pair, from four times as slow to four times as fast; the line is equal speed.
function pairDots(speed) {
  if (!speed) return "";
  const [low, high] = SPEEDS.map(Math.log);
  const place = (x) => 100 * Math.max(0, Math.min(1, (Math.log(x) - low) / (high - low)));
  const quotients = speed.before_s.map((before, n) => before / speed.after_s[n]);
  return h("span.pairs", { role: "img", "aria-label": `${several(quotients.length, "pair")}, ${speedText(speed)}` },
    quotients.map((x) => h("i", { style: `left:${place(x).toFixed(1)}%`, title: x.toPrecision(3) })));
}

function solutionFor(problem, node) {
  const stem = node.path.split("/").pop().replace(/\.py$/, "");
  return (problem.evaluation?.solutions || []).find((solution) => solution.name === stem);
}

function solutionFact(problem, node) {
  const solution = solutionFor(problem, node);
  if (!solution) return null;
  const good = solution.judgement === "right";
  return [h("span.gate", { "data-good": String(good) }, `${good ? "✓" : "✗"} ${solution.judgement}`),
    solution.reason ? `: ${solution.reason}` : ` ${speedText(solution.speed)}`];
}

function evaluationTable(problem, label) {
  const evaluation = problem.evaluation;
  if (!evaluation) return null;
  const nodeOf = (name) => Object.entries(problem.nodes).find(([, node]) => node.path.endsWith(`/${name}.py`))?.[0];
  const rows = evaluation.solutions;
  const right = rows.filter((row) => row.judgement === "right");
  const columns = ["solution", "verdict", "speed-up", "pairs, ¼ to 4", "compiled", "share", "predicted", "measured in the model"];
  const cells = (row) => [
    h("a", { href: problemLink(label, nodeOf(row.name)) }, row.name),
    row.reason ? `${row.judgement}: ${row.reason}` : row.judgement,
    speedText(row.speed), pairDots(row.speed), speedText(row.compiled), row.share === undefined ? "" : percent(row.share),
    row.predicted === undefined ? "" : row.predicted.toFixed(3), speedText(row.measured),
  ];
  const model = evaluation.model;
  const last = model?.comparisons.at(-1);
  const times = model?.speed ? `: ${speedText(model.speed)} times as fast` : "";
  return h("details.evaluation", { open: true },
    h("summary", {}, `${several(right.length, "right solution")} of ${rows.length}`, last ? `, the model with ${last.solutions.length} is ${last.judgement}${times}` : ""),
    h("div.scroll", {}, h("table", {}, h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, cells(row).map((cell) => h("td", {}, cell))))))),
    model?.compiled ? h("p", {}, `torch.compile of the original: ${speedText(model.compiled)}`) : null,
    h("p.dim", {}, `${evaluation.machine.processor}, ${several(evaluation.machine.threads, "thread")}, torch ${evaluation.machine.torch}`));
}
