// One component: what it computes on, what it costs, what proved it, where it stands, and its file.

const GOOD = new Set(["passed", "nothing_to_check"]);

function details(problem, label, id, everywhere, wide) {
  const { nodes, files } = problem;
  const node = nodes[id];
  const link = (other, text) => h("a", { href: problemLink(label, other) }, text || nodes[other]?.name || other);
  const kin = everywhere.get(node.path) || [id];
  const source = codeView([{ name: node.path, text: files[node.path] }, { name: "original.py", text: files["original.py"], line: node.source_line }], wide);
  const time = timeText(problem, id);
  const share = id === "root" || !nodes.root.flops ? "" : `, ${percent(node.flops / nodes.root.flops)} of the problem's`;
  const facts = [
    ["input", tensorLines(node.input_shapes, node.input_dtypes, node.input_strides)],
    ["output", tensorLines(node.output_shapes, node.output_dtypes, node.output_strides)],
    time ? ["time", time] : null,
    ["work", `${flops(node.flops)}${share}, ${size(node.bytes)} moved, ${(node.bytes ? node.flops / node.bytes : 0).toFixed(1)} FLOP/B`],
    node.attributes ? ["attributes", Object.entries(node.attributes).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ")] : null,
    node.groups ? ["groups", node.groups.map((group) => group.map((other) => nodes[other].operation || nodes[other].name).join(" + ")).join("; ")] : null,
    node.module_path ? ["module", node.module_path] : null,
    node.source_line ? ["source", h("button.link", { type: "button", onclick: () => source.open(1, node.source_line) }, `original.py, line ${node.source_line}`)] : null,
    node.level === "kernel" ? ["in other models", h("a", { href: `#/workloads?q=${encodeURIComponent(node.path.split("/").pop().replace(/\.py$/, ""))}` }, "which use it, and its family's sizes")] : null,
    ["instances", kin.length === 1 ? "1" : h("details", {}, h("summary", {}, String(kin.length)),
      h("ul.uses", {}, kin.slice(0, 40).map((other) => h("li", {}, link(other, other)))), kin.length > 40 ? `and ${kin.length - 40} more` : null)],
    ["gates", gatesOf(problem, node)],
    solutionFor(problem, node) ? ["solution", solutionFact(problem, node)] : null,
  ].filter(Boolean);
  const weights = Object.entries(node.weight_shapes || {});
  return h("div", {},
    h("p.where", {}, ancestors(nodes, id).flatMap((up) => [link(up), " › "]), node.name),
    h("h2", {}, levelMark(node.level), " ", problem.titles[node.path]),
    h("p.file", {}, node.path),
    h("dl", {}, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    source.element,
    weights.length ? h("details.weights", {}, h("summary", {}, several(weights.length, "weight")),
      h("div.scroll", {}, h("table", {}, h("thead", {}, h("tr", {}, ["in the file", "shape", "in the original"].map((t) => h("th", { scope: "col" }, t)))),
        h("tbody", {}, weights.map(([name, dims]) => h("tr", {}, h("td", {}, name), h("td", {}, shape(dims)), h("td", {}, (node.weight_map || {})[name] || ""))))))) : null,
    neighbours(problem, id, link));
}

function tensorLines(shapes, dtypes, strides) {
  const runs = [];
  for (const [name, dims] of Object.entries(shapes)) {
    const odd = strides && strides[name] && !contiguous(dims, strides[name]) ? `, strides ${strides[name].join(" ")}` : "";
    const text = `${shape(dims)} ${DTYPES[dtypes[name]] || dtypes[name]}${odd}`;
    const last = runs[runs.length - 1];
    if (last && last.text === text) { last.count += 1; last.to = name; } else runs.push({ name, to: name, text, count: 1 });
  }
  return runs.length ? runs.map((run) => h("div", {}, h("span.dim", {}, run.count > 1 ? `${run.name} … ${run.to} ` : `${run.name} `), run.count > 1 ? `${run.text} ×${run.count}` : run.text)) : "nothing";
}

function contiguous(dims, strides) {
  let expected = 1;
  for (let i = dims.length - 1; i >= 0; i -= 1) {
    if (dims[i] !== 1 && strides[i] !== expected) return false;
    expected *= Math.max(1, dims[i]);
  }
  return true;
}

function gatesOf(problem, node) {
  if (!problem.gates.length) return "not verified";
  const stem = node.path.split("/").pop().replace(/\.py$/, "");
  const found = [];
  for (const gate of problem.gates) {
    for (const [component, verdict, reason, diff] of gate.checks) {
      if (component === node.path || component.includes(`_${stem}_to_`)) found.push([gate.gate, verdict, reason, diff]);
    }
  }
  const seen = new Set();
  const marks = found.filter(([gate, verdict]) => !seen.has(gate + verdict) && seen.add(gate + verdict));
  return marks.length ? marks.map(([gate, verdict, reason, diff]) => h("span.gate", { "data-good": String(GOOD.has(verdict)), title: reason || (diff === null ? verdict : `largest difference ${diff}`) },
    `${GOOD.has(verdict) ? "✓" : "✗"} ${gate}`, reason ? `: ${reason}` : "")) : "by the whole's gates";
}

// What the graph shows, as lists that a keyboard reaches.
function neighbours(problem, id, link) {
  const within = (other) => other === id || other.startsWith(`${id}.`) || id === "root";
  const into = new Map(), out = new Map();
  for (const [from, to, , dims, dtype] of problem.flow) {
    const text = `${shape(dims)} ${DTYPES[dtype] || dtype}`;
    if (!within(from) && within(to)) into.set(from, text);
    if (within(from) && !within(to)) out.set(to, text);
  }
  const list = (name, found) => (found.size ? h("div", {}, h("h3", {}, name), h("ul.uses", {}, [...found].slice(0, 12).map(([other, text]) =>
    h("li", {}, problem.nodes[other] ? link(other, other) : other, h("span.dim", {}, ` ${text}`))), found.size > 12 ? h("li", {}, `and ${found.size - 12} more`) : null)) : null);
  return h("div.flows", {}, list("comes from", into), list("goes to", out));
}
