// Data flow as nodes and edges with places: the children of one component, or every kernel.

const MANY = 120;
const CROSSED = 900;
const LETTER = 6.7;
const LINE = 34;

// Nodes and edges inside `scope`; equal neighbours are one node, different tensors between the same two are counted.
function flowWithin(problem, scope, everyKernel) {
  const { nodes, flow } = problem;
  const inside = (id) => scope === "root" || id === scope || id.startsWith(`${scope}.`);
  const equals = new Map();
  for (const row of everyKernel ? [] : itemsBelow(problem, scope)) {
    for (const { nodes: ids } of row.items || [row]) for (const id of ids) equals.set(id, ids);
  }
  function holder(id) {
    if (id === "input" || id === "output") return id;
    if (!inside(id)) return null;
    if (everyKernel) return id;
    const above = [...ancestors(nodes, id), id];
    const child = above[above.indexOf(scope) + 1] || id;
    return (equals.get(child) || [child])[0];
  }
  const ids = everyKernel
    ? Object.keys(nodes).filter((id) => nodes[id].level === "kernel" && inside(id))
    : [...new Set((nodes[scope].children || [scope]).map(holder))];
  const order = new Map((ids.length ? ids : [scope]).map((id, i) => [id, i]));
  const edges = new Map();
  for (const [from, to, tensor, dims, dtype] of flow) {
    let source = holder(from), target = holder(to);
    if (source === null && target === null) continue;
    if (source === target) continue;
    if ((source === null || source === "input") && (target === null || target === "output")) continue;
    source = source === null ? "input" : source;
    target = target === null ? "output" : target;
    const key = `${source}>${target}`;
    // Where blocks take turns, the next turn's edge leads back.
    const back = order.has(source) && order.has(target) && order.get(target) < order.get(source) && !everyKernel;
    if (!edges.has(key)) edges.set(key, { source, target, tensors: [], back });
    const list = edges.get(key).tensors;
    const text = `${shape(dims)} ${DTYPES[dtype] || dtype}`;
    const same = list.find((other) => other.text === text);
    const one = `${holder(from)} ${tensor}`;
    if (same) same.names.add(one); else list.push({ text, names: new Set([one]) });
  }
  const shown = new Map();
  for (const id of order.keys()) shown.set(id, { node: nodes[id], lines: caption(problem, equals.get(id) || [id]), outcome: solutionFor(problem, nodes[id])?.outcome });
  for (const edge of edges.values()) for (const end of [edge.source, edge.target]) if (!shown.has(end)) shown.set(end, { node: null, lines: [end] });
  return { shown, edges: [...edges.values()] };
}

function edgeText(edge) {
  const words = edge.tensors.map((t) => (t.names.size > 1 ? `${t.text} ×${t.names.size}` : t.text));
  return words.length > 2 ? `${words.slice(0, 2).join("\n")}\n+${words.length - 2}` : words.join("\n");
}

// A node's title and its author's name, in lines that break at underscores.
function caption(problem, ids) {
  const title = problem.titles[problem.nodes[ids[0]].path] + (ids.length > 1 ? ` × ${ids.length}` : "");
  const names = authorNames(problem, ids);
  return [...broken(title), ...(names ? broken(names) : []), ...solutionLine(problem, ids[0])];
}

function solutionLine(problem, id) {
  const own = solutionFor(problem, problem.nodes[id]);
  const inside = solutionsInside(problem, id).length;
  return [own ? `solution ${solutionText(own)}` : null, inside ? `${several(inside, "solution")} inside` : null].filter(Boolean);
}

function broken(text) {
  const lines = [""];
  for (const word of text.split(/(?<=[_ ])/)) {
    if (lines[lines.length - 1].length + word.length > LINE && lines[lines.length - 1]) lines.push("");
    lines[lines.length - 1] += word;
  }
  return lines;
}

function box({ lines }) {
  return { width: Math.max(64, Math.max(...lines.map((line) => line.length)) * LETTER + 20), height: 16 + 15 * lines.length };
}

// Where each node stands and where each edge bends, in a window of a width: dagre's layers from top to bottom, while there
// are not too many.
function arrange(shown, edges, width) {
  const forward = edges.filter((edge) => !edge.back);
  const ranks = ranked(shown, forward);
  // dagre puts a dummy node on each layer that an edge crosses: an unrolled loop would take minutes.
  const crossed = forward.reduce((sum, edge) => sum + ranks.get(edge.target) - ranks.get(edge.source), 0);
  if (shown.size > MANY || crossed > CROSSED) return { places: folded(shown, ranks, width), large: true };
  const layout = new dagre.graphlib.Graph();
  layout.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 44 });
  layout.setDefaultEdgeLabel(() => ({}));
  for (const [id, one] of shown) layout.setNode(id, box(one));
  for (const edge of forward) {
    const lines = edgeText(edge).split("\n");
    layout.setEdge(edge.source, edge.target, { width: Math.max(...lines.map((line) => line.length)) * 5.2, height: lines.length * 11, labelpos: "c" });
  }
  dagre.layout(layout);
  for (const edge of forward) edge.points = layout.edge(edge.source, edge.target).points;
  return { places: new Map(layout.nodes().map((id) => [id, layout.node(id)])), large: false };
}

// Points of an edge as Cytoscape has them: how far along the straight line, and how far beside it.
function bend(from, to, points) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const square = dx * dx + dy * dy || 1, length = Math.sqrt(square);
  return {
    along: points.map((p) => ((p.x - from.x) * dx + (p.y - from.y) * dy) / square),
    beside: points.map((p) => ((p.y - from.y) * dx - (p.x - from.x) * dy) / length),
  };
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

// Layers from top to bottom, and on in the next column: as many columns as can be read in the window.
function folded(shown, ranks, width) {
  const layers = [];
  for (const [id, rank] of ranks) (layers[rank] = layers[rank] || []).push({ id, ...box(shown.get(id)) });
  const widths = layers.map((layer) => layer.reduce((sum, one) => sum + one.width + 18, 0));
  const column = Math.max(...widths) + 60;
  const columns = Math.max(1, Math.floor(width / 0.8 / column));
  const rows = Math.max(8, Math.ceil(layers.length / columns));
  const places = new Map();
  layers.forEach((layer, rank) => {
    let x = Math.floor(rank / rows) * column - widths[rank] / 2;
    for (const one of layer) {
      places.set(one.id, { ...one, x: x + one.width / 2, y: (rank % rows) * 78 });
      x += one.width + 18;
    }
  });
  return places;
}

// The graph as a picture that other programs open, in the colours of the page.
function toSvg({ shown, edges, places }) {
  const boxes = [...places.values()];
  const [left, top] = [Math.min(...boxes.map((b) => b.x - b.width / 2)) - 60, Math.min(...boxes.map((b) => b.y - b.height / 2)) - 20];
  const [right, bottom] = [Math.max(...boxes.map((b) => b.x + b.width / 2)) + 60, Math.max(...boxes.map((b) => b.y + b.height / 2)) + 20];
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const words = (x, y, lines, size, fill) => lines.map((line, i) =>
    `<text x="${x.toFixed(1)}" y="${(y + (i - (lines.length - 1) / 2) * size * 1.3 + size / 3).toFixed(1)}" font-size="${size}" fill="${fill}">${escaped(line)}</text>`).join("");
  const drawn = edges.map((edge) => {
    const [from, to] = [places.get(edge.source), places.get(edge.target)];
    const inner = edge.points ? edge.points.slice(1, -1) : [];
    const points = [border(from, inner[0] || to), ...inner, border(to, inner[inner.length - 1] || from)];
    const middle = points.length % 2 ? points[(points.length - 1) / 2] : { x: (points[points.length / 2 - 1].x + points[points.length / 2].x) / 2, y: (points[points.length / 2 - 1].y + points[points.length / 2].y) / 2 };
    const path = points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" ");
    return `<polyline points="${path}" fill="none" stroke="${colour("--edge")}"${edge.back ? ' stroke-dasharray="5 4"' : ""} marker-end="url(#tip)"/>${edge.points ? words(middle.x, middle.y, edgeText(edge).split("\n"), 10, colour("--soft")) : ""}`;
  });
  const nodes = [...shown].map(([id, { node, lines, outcome }]) => {
    const { x, y, width, height } = places.get(id);
    const [line, fill] = node ? [colour(OUTCOME_COLOURS[outcome] || `--${node.level}`), colour(`--${node.level}-wash`)] : [colour("--soft"), colour("--paper")];
    return `<rect x="${(x - width / 2).toFixed(1)}" y="${(y - height / 2).toFixed(1)}" width="${width.toFixed(1)}" height="${height}" rx="5" fill="${fill}" stroke="${line}" stroke-width="1.5"/>${words(x, y, lines, 11.5, colour("--ink"))}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${left.toFixed(1)} ${top.toFixed(1)} ${(right - left).toFixed(1)} ${(bottom - top).toFixed(1)}" font-family="sans-serif" text-anchor="middle"><defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="${colour("--edge")}"/></marker></defs><rect x="${left.toFixed(1)}" y="${top.toFixed(1)}" width="100%" height="100%" fill="${colour("--paper")}"/>${drawn.join("")}${nodes.join("")}</svg>\n`;
}

// Where the line from a box to a point leaves the box.
function border(from, to) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const part = Math.min(dx ? from.width / 2 / Math.abs(dx) : Infinity, dy ? from.height / 2 / Math.abs(dy) : Infinity, 1);
  return { x: from.x + dx * part, y: from.y + dy * part };
}
