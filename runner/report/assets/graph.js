// Data flow as a graph: the children of one component, or every kernel, with shapes on the edges.

const MANY = 120;
const CROSSED = 900;
const CROWD = 30;
const LETTER = 6.7;

// Nodes and edges of the graph inside `scope`; different tensors between the same two are counted.
function flowWithin(problem, scope, everyKernel) {
  const { nodes, flow } = problem;
  const shown = new Map();
  const inside = (id) => scope === "root" || id === scope || id.startsWith(`${scope}.`);
  function holder(id) {
    if (id === "input" || id === "output") return id;
    if (!inside(id)) return null;
    if (everyKernel) return id;
    const above = [...ancestors(nodes, id), id];
    return above[above.indexOf(scope) + 1] || id;
  }
  const edges = new Map();
  for (const [from, to, tensor, dims, dtype] of flow) {
    let source = holder(from), target = holder(to);
    if (source === null && target === null) continue;
    if (source === target) continue;
    if ((source === null || source === "input") && (target === null || target === "output")) continue;
    source = source === null ? "input" : source;
    target = target === null ? "output" : target;
    if ((source === "input" && target === "output")) continue;
    const key = `${source}>${target}`;
    if (!edges.has(key)) edges.set(key, { source, target, tensors: [] });
    const list = edges.get(key).tensors;
    const text = `${shape(dims)} ${DTYPES[dtype] || dtype}`;
    const same = list.find((other) => other.text === text);
    const one = `${from} ${tensor}`;
    if (same) same.names.add(one); else list.push({ text, names: new Set([one]) });
  }
  const ids = everyKernel
    ? Object.keys(nodes).filter((id) => nodes[id].level === "kernel" && inside(id))
    : (nodes[scope].children || [scope]);
  for (const id of ids.length ? ids : [scope]) shown.set(id, nodes[id]);
  for (const edge of edges.values()) for (const end of [edge.source, edge.target]) if (!shown.has(end)) shown.set(end, null);
  return { shown, edges: [...edges.values()] };
}

function edgeText(edge) {
  const words = edge.tensors.map((t) => (t.names.size > 1 ? `${t.text} ×${t.names.size}` : t.text));
  return words.length > 2 ? `${words.slice(0, 2).join("\n")}\n+${words.length - 2}` : words.join("\n");
}

// Where each node stands, and where each edge bends: dagre's layers from top to bottom, while there
// are not too many.
function arrange(shown, edges) {
  const ranks = ranked(shown, edges);
  // dagre puts a dummy node on each layer that an edge crosses: an unrolled loop would take minutes.
  const crossed = edges.reduce((sum, edge) => sum + ranks.get(edge.target) - ranks.get(edge.source), 0);
  if (shown.size > MANY || crossed > CROSSED) return { places: folded(shown, ranks), bends: null };
  const layout = new dagre.graphlib.Graph();
  layout.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 44 });
  layout.setDefaultEdgeLabel(() => ({}));
  for (const [id, node] of shown) layout.setNode(id, box(id, node));
  for (const edge of edges) {
    const lines = edgeText(edge).split("\n");
    const width = Math.max(...lines.map((line) => line.length)) * 5.2;
    layout.setEdge(edge.source, edge.target, { width, height: lines.length * 11, labelpos: "c" });
  }
  dagre.layout(layout);
  const places = new Map(layout.nodes().map((id) => [id, layout.node(id)]));
  const bends = edges.map((edge) => bend(places.get(edge.source), places.get(edge.target), layout.edge(edge.source, edge.target).points.slice(1, -1)));
  return { places, bends };
}

// Points of an edge as Cytoscape has them: how far along the straight line, and how far beside it.
function bend(from, to, points) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const square = dx * dx + dy * dy || 1, length = Math.sqrt(square);
  const along = points.map((p) => ((p.x - from.x) * dx + (p.y - from.y) * dy) / square);
  const beside = points.map((p) => ((p.y - from.y) * dx - (p.x - from.x) * dy) / length);
  return { along, beside };
}

// How many edges are between a node and the inputs, at most; edges go forward only.
function ranked(shown, edges) {
  const ranks = new Map([...shown.keys()].map((id) => [id, 0]));
  const waiting = new Map([...shown.keys()].map((id) => [id, 0]));
  const out = new Map([...shown.keys()].map((id) => [id, []]));
  for (const edge of edges) {
    waiting.set(edge.target, waiting.get(edge.target) + 1);
    out.get(edge.source).push(edge.target);
  }
  const ready = [...shown.keys()].filter((id) => waiting.get(id) === 0);
  for (const id of ready) {
    for (const target of out.get(id)) {
      ranks.set(target, Math.max(ranks.get(target), ranks.get(id) + 1));
      waiting.set(target, waiting.get(target) - 1);
      if (waiting.get(target) === 0) ready.push(target);
    }
  }
  return ranks;
}

// Layers from top to bottom, and on in the next column, so that all of it is as wide as high.
function folded(shown, ranks) {
  const layers = [];
  for (const [id, rank] of ranks) (layers[rank] = layers[rank] || []).push({ id, ...box(id, shown.get(id)) });
  const widths = layers.map((layer) => layer.reduce((sum, node) => sum + node.width + 18, 0));
  const column = Math.max(...widths) + 60;
  const height = 78;
  const rows = Math.max(8, Math.ceil(Math.sqrt((layers.length * column) / height)));
  const places = new Map();
  layers.forEach((layer, rank) => {
    let x = Math.floor(rank / rows) * column - widths[rank] / 2;
    for (const node of layer) {
      places.set(node.id, { ...node, x: x + node.width / 2, y: (rank % rows) * height });
      x += node.width + 18;
    }
  });
  return places;
}

function box(id, node) {
  const lines = caption(id, node).split("\n");
  return { width: Math.max(64, Math.max(...lines.map((l) => l.length)) * LETTER + 20), height: 16 + 15 * lines.length };
}

function caption(id, node) {
  if (node === null) return id;
  const stem = node.path.split("/").pop().replace(/(_\d+x|_\d+_|_k\d|_scalar|\.py$).*/, "");
  const operation = node.operation || stem;
  const short = (text) => (text.length > 26 ? `${text.slice(0, 25)}…` : text);
  return node.name.startsWith(operation) ? short(node.name) : `${short(node.name)}\n${short(operation)}`;
}

function graph(problem, onSelect, onOpen) {
  const canvas = h("div.canvas", { role: "img", "aria-label": "Data flow" });
  let cy = null, scope = null, every = false, large = false;

  function style() {
    const ink = colour("--ink"), paper = colour("--paper");
    const level = (name) => ({ selector: `node[level="${name}"]`, style: { "border-color": colour(`--${name}`), "background-color": colour(`--${name}-wash`) } });
    return [
      { selector: "node", style: { shape: "round-rectangle", width: "data(width)", height: "data(height)", label: "data(label)", "text-valign": "center", "text-halign": "center", "text-wrap": "wrap", "font-size": 11.5, "line-height": 1.25, "font-family": "ui-sans-serif, system-ui, sans-serif", color: ink, "border-width": 1.5, "min-zoomed-font-size": 5 } },
      ...LEVELS.map(level),
      { selector: 'node[level="end"]', style: { "background-color": paper, "border-color": colour("--soft"), "border-style": "dashed", color: colour("--soft") } },
      { selector: "edge", style: { width: 1.3, "line-color": colour("--edge"), "target-arrow-color": colour("--edge"), "target-arrow-shape": "triangle", "arrow-scale": 0.8, ...(large ? { "curve-style": "straight" } : { "curve-style": "round-segments", "segment-weights": "data(along)", "segment-distances": "data(beside)", "segment-radii": 18, "edge-distances": "node-position" }), "font-size": 10, label: large ? "" : "data(label)", "text-wrap": "wrap", color: colour("--soft"), "text-background-color": paper, "text-background-opacity": 0.92, "text-background-padding": 2, "min-zoomed-font-size": 6 } },
      { selector: "edge.crowded", style: { opacity: 0.16, width: 1, "target-arrow-shape": "none" } },
      { selector: "node.chosen", style: { "border-width": 3.5, "border-color": colour("--accent") } },
      { selector: "edge.near", style: { "line-color": colour("--accent"), "target-arrow-color": colour("--accent"), "target-arrow-shape": "triangle", opacity: 1, width: 2, label: "data(label)", "z-index": 9 } },
    ];
  }

  function show(newScope, everyKernel) {
    if (cy && newScope === scope && everyKernel === every) return;
    scope = newScope;
    every = everyKernel;
    const { shown, edges } = flowWithin(problem, scope, every);
    const { places, bends } = arrange(shown, edges);
    large = bends === null;
    const elements = [
      ...[...shown].map(([id, node]) => ({ data: { id, label: caption(id, node), level: node ? node.level : "end", width: places.get(id).width, height: places.get(id).height }, position: { x: places.get(id).x, y: places.get(id).y } })),
      ...edges.map((edge, i) => ({ data: { id: `edge ${i}`, source: edge.source, target: edge.target, label: edgeText(edge), along: bends ? bends[i].along : [0.5], beside: bends ? bends[i].beside : [0] } })),
    ];
    if (large) crowd(edges, elements);
    if (cy) cy.destroy();
    cy = cytoscape({ container: canvas, elements, style: style(), layout: { name: "preset" }, minZoom: 0.03, maxZoom: 3, autoungrabify: true, boxSelectionEnabled: false, hideEdgesOnViewport: large, textureOnViewport: large, pixelRatio: large ? 1 : "auto" });
    cy.on("tap", "node", (event) => { const id = event.target.id(); if (problem.nodes[id]) onSelect(id); });
    cy.on("dbltap", "node", (event) => { const id = event.target.id(); if ((problem.nodes[id]?.children || []).length) onOpen(id); });
    canvas.dataset.nodes = shown.size;
    canvas.setAttribute("aria-label", `Data flow between ${several(shown.size, "node")}; the lists beside the source say the same`);
    frame();
  }

  // One node that feeds hundreds would cover everything with its edges.
  function crowd(edges, elements) {
    const degree = new Map();
    for (const edge of edges) for (const end of [edge.source, edge.target]) degree.set(end, (degree.get(end) || 0) + 1);
    for (const element of elements) {
      const { source, target } = element.data;
      if (source && Math.max(degree.get(source), degree.get(target)) > CROWD) element.classes = "crowded";
    }
  }

  // The whole where it can be read, else its beginning at a size that can.
  function frame() {
    cy.resize();
    cy.fit(undefined, 16);
    const readable = 0.75;
    if (cy.zoom() > 1.15) { cy.zoom(1.15); cy.center(); }
    if (cy.zoom() < readable) {
      const first = cy.nodes().min((node) => node.position("y") + (large ? node.position("x") : 0)).ele;
      cy.zoom(readable);
      cy.pan({ x: cy.width() / 2 - first.position("x") * readable, y: 30 - (first.position("y") - first.height() / 2) * readable });
    }
  }

  function choose(id) {
    if (!cy) return;
    cy.elements().removeClass("chosen near");
    const node = cy.getElementById(id);
    if (node.empty()) return;
    node.addClass("chosen");
    node.connectedEdges().addClass("near");
    const at = node.renderedPosition();
    if (at.x < 20 || at.y < 20 || at.x > cy.width() - 20 || at.y > cy.height() - 20) cy.center(node);
  }

  return {
    element: canvas,
    show, choose,
    zoom: (factor) => cy && cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } }),
    whole: () => cy && cy.fit(undefined, 16),
    recolour: () => cy && cy.style(style()),
    resize: () => cy && cy.resize(),
    destroy: () => { if (cy) cy.destroy(); cy = null; },
    inspect: () => cy,
  };
}
