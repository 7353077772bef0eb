// One problem: hierarchy, data flow and details side by side, kept in step by the address.

let current = null;

async function problem(label, id) {
  const number = RUN.problems.findIndex((row) => row.label === label);
  const row = RUN.problems[number];
  if (!row) return h("p.note", {}, `There is no problem ${label} in this report.`);
  if (!row.opens) return h("div", {}, heading(row), h("p.note", {}, row.missing || row.reason || "Nothing was written."));
  if (!current || current.label !== label) {
    if (current) current.flow.destroy();
    current = build(row, await unpack(`problem-${number}`));
  }
  const known = current.data.nodes[id] ? id : "root";
  requestAnimationFrame(() => current.select(known));
  return current.element;
}

function heading(row) {
  return h("div.heading", {},
    h("h1", {}, row.label, " ", badge(row.status)),
    row.reason ? h("p.note", {}, row.reason) : null,
    row.missing && row.opens ? h("p.note", {}, row.missing) : null,
    row.later ? h("p.note", {}, "Shown as a later run made it.") : null,
    row.health.length ? h("details.health", { open: row.health.length < 3 }, h("summary", {}, "Passed, but mind"), h("ul", {}, row.health.map((text) => h("li", {}, text)))) : null);
}

function build(row, data) {
  const everywhere = new Map();
  for (const [id, node] of Object.entries(data.nodes)) {
    if (!everywhere.has(node.path)) everywhere.set(node.path, []);
    everywhere.get(node.path).push(id);
  }
  const go = (id) => { location.hash = problemLink(row.label, id); };
  const tree = outline(data.nodes, go);
  let scope = "root";
  const flow = graph(data, go, (id) => { go(id); showScope(id); });
  const every = h("input", { type: "checkbox", id: "every" });
  const scopeName = h("b.scope");
  const up = h("button", { type: "button", title: "Show what this is a part of" }, "↑ up");
  const panel = h("section.details", { "aria-label": "Component", "aria-live": "polite" });

  function showScope(id) {
    scope = id;
    flow.show(every.checked ? "root" : scope, every.checked);
    scopeName.textContent = every.checked ? "every kernel" : data.nodes[scope].name;
    up.disabled = every.checked || scope === "root";
  }
  every.addEventListener("change", () => { showScope(scope); flow.choose(chosen); });
  up.addEventListener("click", () => showScope(ancestors(data.nodes, scope).pop() || "root"));

  let chosen = "root";
  function select(id) {
    const children = data.nodes[id].children || [];
    const above = ancestors(data.nodes, id);
    // What is drawn already stays: a click must not move the graph under the pointer.
    const drawn = flow.inspect() && flow.inspect().getElementById(id).nonempty() && id !== "root";
    if (!drawn) showScope(children.length ? id : above[above.length - 1] || "root");
    chosen = id;
    tree.reveal(id);
    flow.choose(id);
    panel.replaceChildren(details(data, row.label, id, everywhere));
    const sourceBox = panel.querySelector(".sources");
    panel.querySelector("[data-line]")?.addEventListener("click", (event) => sourceBox.openOriginal(Number(event.target.dataset.line)));
  }

  const tools = [["+", "Zoom in", () => flow.zoom(1.3)], ["−", "Zoom out", () => flow.zoom(1 / 1.3)], ["fit", "Show all of it", () => flow.whole()]]
    .map(([text, title, act]) => h("button", { type: "button", title, onclick: act }, text));
  const inner = h("button", { type: "button", title: "Show what is inside of the chosen one" }, "↓ into");
  inner.addEventListener("click", () => { if ((data.nodes[chosen].children || []).length) showScope(chosen); });
  const about = data.about;
  const counts = LEVELS.filter((level) => about.by_level[level])
    .map((level) => h("span.count", {}, levelMark(level), ` ${about.by_level[level]}`));
  const element = h("div.problem", {},
    heading(row),
    h("p.counts", {}, counts, h("span", {}, `${several(about.kernel_instances, "kernel instance")} · captured on ${about.capture} tensors · ${about.mode} mode · ${seconds(row.seconds)}${row.memory ? ` · ${size(row.memory)}` : ""}`)),
    data.gates.length ? h("p.gates", {}, data.gates.map((gate) => h("span.gate", { "data-good": String(GOOD.has(gate.verdict)), title: several(gate.checks.length, "check") },
      `${GOOD.has(gate.verdict) ? "✓" : "✗"} ${gate.gate} `, h("small", {}, String(gate.checks.length))))) : null,
    evaluationTable(data, row.label),
    h("div.panes", {},
      h("section.pane.tree", { "aria-label": "Hierarchy" }, h("h2", {}, "Hierarchy"), tree.element),
      h("section.pane.flow", { "aria-label": "Data flow" }, h("div.bar", {}, h("h2", {}, "Data flow "), scopeName,
        h("span.tools", {}, up, inner, ...tools, h("label", { for: "every" }, every, " every kernel"))), flow.element),
      panel));
  return { label: row.label, data, element, select, flow };
}
