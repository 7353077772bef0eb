// One problem: its verdict, then hierarchy, data flow and code side by side, kept in step by the address.

let current = null;

async function problem(label, id) {
  const number = RUN.problems.findIndex((row) => row.label === label);
  const row = RUN.problems[number];
  if (!row) return h("div", {}, h("h1", {}, label), h("p.note", {}, `There is no problem ${label} in this report.`));
  if (!row.opens) return h("div", {}, heading(row), await failure(row, number));
  if (!current || current.label !== label) {
    if (current) current.flow.destroy();
    const [data] = await Promise.all([unpack(`problem-${number}`), library("highlight"), library("cytoscape"), library("dagre")]);
    data.evaluation = ((await unpack("solutions")) || []).find((evaluation) => evaluation.problem === number);
    current = build(row, number, data, row.status === "passed" ? null : await failure(row, number, data.gates, data.nodes));
  }
  const known = current.data.nodes[id] ? id : "root";
  requestAnimationFrame(() => current.select(known));
  return current.element;
}

function heading(row, facts, buttons) {
  return h("div.heading", {},
    h("h1", {}, row.label, " ", badge(row.status)),
    row.reason ? h("p.note.reason", {}, row.reason) : null,
    row.missing && row.missing !== row.reason ? h("p.note", {}, row.missing) : null,
    row.later ? h("p.note", {}, "Shown as a later run made it.") : null,
    row.health.length ? h("details.health", { open: row.health.length < 3 }, h("summary", {}, row.status === "passed" ? "Passed, but mind" : "Mind"), h("ul", {}, row.health.map((text) => h("li", {}, text)))) : null,
    facts, buttons);
}

function verdict(row, gates) {
  if (row.status !== "passed") return row.status.replace("_", " ");
  return `all ${gates.length || ""} gates${row.bitwise ? ", equal to the last bit" : ""}`;
}

function factsOf(row, data) {
  const { about, nodes } = data;
  const count = (dims) => dims.reduce((product, n) => product * n, 1);
  const names = nodes.root.weight_map || {};
  const weights = new Map(Object.entries(nodes.root.weight_shapes || {}).map(([name, dims]) => [names[name] || name, dims])); // tied weights once
  const parameters = [...weights.values()].reduce((sum, dims) => sum + count(dims), 0);
  const work = workOf(data, "root");
  const kernels = uniqueKernels(data);
  const top = heaviest(kernels);
  const part = work.time ? (top.time * top.instances) / work.time : work.flops ? (top.flops * top.instances) / work.flops : 0;
  const fact = (name, ...value) => h("div.fact", {}, h("dt", {}, name), h("dd", {}, value));
  return h("dl.facts", {},
    fact("verdict", verdict(row, data.gates)),
    fact("health", row.health.length ? several(row.health.length, "remark") : row.status === "passed" ? "no remarks" : "not judged"),
    fact("parameters, buffers", `${parameters.toLocaleString("en")}`),
    fact("work", `${flops(nodes.root.flops)}, ${size(work.bytes)} moved`),
    work.time ? fact("time of its kernels", `${work.untimed ? "≥ " : ""}${seconds(work.time)}`) : null,
    fact(work.time ? "slowest kernel" : "heaviest kernel", h("a", { href: problemLink(row.label, top.id) }, breakable(top.name)), ` ${percent(part)} of ${work.time ? "time" : "FLOPs"}${top.instances > 1 ? `, in ${top.instances} places` : ""}`),
    data.evaluation ? fact("solutions", ...solvedFact(data, row.label)) : null,
    fact("parts", h("span.counts", {}, LEVELS.filter((level) => about.by_level[level]).map((level) => h("span.count", {}, levelMark(level), ` ${about.by_level[level]}`)), several(about.kernel_instances, "instance"))),
    fact("taken apart", `on ${about.capture} tensors, ${about.mode} mode, ${seconds(row.seconds)}${row.memory ? `, ${size(row.memory)}` : ""}`));
}

function gateMarks(gates) {
  return gates.length ? h("p.gates", {}, gates.map((gate) => h("span.gate", { "data-good": String(GOOD.has(gate.verdict)), title: several(gate.checks.length, "check") },
    `${GOOD.has(gate.verdict) ? "✓" : "✗"} ${gate.gate} `, h("small", {}, String(gate.checks.length))))) : null;
}

// The problem's folder as kdrun verify reads it.
async function downloadFolder(row, number, data) {
  const [others, shared] = await Promise.all([unpack(`folder-${number}`), unpack("shared"), library("fflate")]);
  const texts = { ...data.files };
  for (const [name, text] of Object.entries(others)) if (typeof text !== "string") texts[name] = Array.isArray(text) ? text[0] : shared[text];
  for (const [name, same] of Object.entries(others)) if (typeof same === "string") texts[name] = texts[same];
  const nodes = Object.fromEntries(Object.entries(data.nodes).map(([id, node]) => [id, { id, ...node }]));
  const flow = data.flow.map(([from, to, tensor_name, dims, dtype]) => ({ from, to, tensor_name, shape: dims, dtype }));
  texts["decomposition_tree.json"] = `${JSON.stringify({ metadata: data.about, nodes, data_flow: flow }, null, 1)}\n`;
  const packed = Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${row.name}/${name}`, fflate.strToU8(text)]));
  download(`${row.name}.zip`, fflate.zipSync(packed), "application/zip");
}

function build(row, number, data, failed) {
  const everywhere = new Map();
  for (const [id, node] of Object.entries(data.nodes)) {
    if (!everywhere.has(node.path)) everywhere.set(node.path, []);
    everywhere.get(node.path).push(id);
  }
  // A node that the graph shows keeps the graph as it is looked at.
  let within = false;  // Whether a pane was clicked, which then stays where it is.
  const go = (id) => {
    const { state } = readAddress();
    within = true;
    location.hash = problemLink(row.label, id) + (flow.draws(id) && state.size ? `?${state}` : "");
  };
  const tree = outline(data, go);
  let scope = null, chosen = "root";
  const flow = graph(data, go, (id) => { go(id); showScope(id); }, (zoom) => remember({ zoom, in: scope }));
  const every = h("input", { type: "checkbox", id: "every" });
  const scopeName = h("b.scope");
  const up = h("button.small", { type: "button", title: "Show what this is a part of" }, "↑ up");
  const inner = h("button.small", { type: "button", title: "Show what is inside of the chosen one" }, "↓ into");
  const panel = h("section.details", { "aria-label": "Component" });
  const flowPane = h("section.pane.flow", { "aria-label": "Data flow" });
  const fullGraph = fullButton("full screen", "The graph in the whole window; Escape ends it", () => flowPane, () => { flow.resize(); flow.frame(); });
  const wide = fullButton("wide", "The code in the whole window; Escape ends it", () => panel, () => {});

  function showScope(id) {
    scope = id;
    flow.show(every.checked ? "root" : scope, every.checked);
    scopeName.textContent = every.checked ? "every kernel" : scope === "root" ? row.name : data.nodes[scope].name;
    up.disabled = every.checked || scope === "root";
  }
  function look(id) {
    showScope(id);
    flow.choose(chosen);
    remember({ in: scope, every: every.checked ? "1" : null, zoom: null });
  }
  every.addEventListener("change", () => look(scope));
  up.addEventListener("click", () => look(ancestors(data.nodes, scope).pop() || "root"));
  inner.addEventListener("click", () => { if ((data.nodes[chosen].children || []).length) look(chosen); });

  function select(id) {
    const { state } = readAddress();
    const above = ancestors(data.nodes, id);
    const first = scope === null;
    if (first) {
      every.checked = state.get("every") === "1";
      if (data.nodes[state.get("in")]) showScope(state.get("in"));
    }
    // What is drawn already stays: a click must not move the graph under the pointer.
    if (scope === null || !(flow.draws(id) && id !== "root")) showScope((data.nodes[id].children || []).length ? id : above[above.length - 1] || "root");
    chosen = id;
    inner.disabled = !(data.nodes[id].children || []).length;
    tree.reveal(id);
    flow.choose(id);
    if (state.has("zoom")) flow.restore(state.get("zoom"));
    panel.replaceChildren(details(data, row.label, id, everywhere, wide));
    const { top } = panel.getBoundingClientRect();
    if (!within && id !== "root" && (!first || top > innerHeight - 100)) panel.scrollIntoView();
    within = false;
  }

  const tools = [["+", "Zoom in", () => flow.zoom(1.3)], ["−", "Zoom out", () => flow.zoom(1 / 1.3)], ["fit", "Show all of it", () => flow.whole()],
    ["SVG", "Save the graph as a picture", () => download(`${row.name}.svg`, flow.svg(), "image/svg+xml")]]
    .map(([text, title, act]) => h("button.small", { type: "button", title, "aria-label": text.length > 1 ? undefined : title, onclick: act }, text));
  const panes = h("div.panes");
  flowPane.append(h("div.bar", {}, h("h2", {}, "Data flow "), scopeName,
    h("span.tools", {}, up, inner, ...tools, fullGraph, h("label", { for: "every" }, every, " every kernel"))), flow.element);
  panes.append(
    h("section.pane.tree", { "aria-label": "Hierarchy" }, h("h2", {}, "Hierarchy"), tree.element), splitter("left", panes, flow.resize),
    flowPane, splitter("right", panes, flow.resize), panel);
  const zip = downloadButton("folder as zip", "All that `kdrun verify` reads, without this run's verdicts", () => downloadFolder(row, number, data));
  const element = h("div.problem", {}, heading(row, factsOf(row, data), h("div.under", {}, gateMarks(data.gates), zip)), failed, panes, kernelsSection(data, row.label));
  return { label: row.label, data, element, select, flow };
}
