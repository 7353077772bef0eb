// The data flow as a graph that is moved, zoomed and clicked.

const CROWD = 30;
const OUTCOME_COLOURS = { faster: "--good", wrong: "--bad", broken: "--bad" };

// onMove gets "zoom,x,y" whenever a person has moved or zoomed the graph.
function graph(problem, onSelect, onOpen, onMove) {
  const canvas = h("div.canvas", { role: "group", "aria-label": "Data flow", tabindex: "0" });
  const frameOf = h("div.frame", {}, canvas);
  let cy = null, scope = null, every = false, drawn = null;

  function style() {
    const ink = colour("--ink"), paper = colour("--paper"), { large } = drawn;
    const level = (name) => ({ selector: `node[level="${name}"]`, style: { "border-color": colour(`--${name}`), "background-color": colour(`--${name}-wash`) } });
    return [
      { selector: "node", style: { shape: "round-rectangle", width: "data(width)", height: "data(height)", label: "data(label)", "text-valign": "center", "text-halign": "center", "text-wrap": "wrap", "font-size": 11.5, "line-height": 1.25, "font-family": "ui-sans-serif, system-ui, sans-serif", color: ink, "border-width": 1.5, "min-zoomed-font-size": 5 } },
      ...LEVELS.map(level),
      { selector: 'node[level="end"]', style: { "background-color": paper, "border-color": colour("--soft"), "border-style": "dashed", color: colour("--soft") } },
      ...Object.entries(OUTCOME_COLOURS).map(([outcome, name]) => ({ selector: `node[outcome="${outcome}"]`, style: { "border-width": 3, "border-color": colour(name) } })),
      { selector: "node[?many]", style: { "border-style": "double", "border-width": 4 } },
      { selector: "edge", style: { width: 1.3, "line-color": colour("--edge"), "target-arrow-color": colour("--edge"), "target-arrow-shape": "triangle", "arrow-scale": 0.8, ...(large ? { "curve-style": "straight" } : { "curve-style": "round-segments", "segment-weights": "data(along)", "segment-distances": "data(beside)", "segment-radii": 18, "edge-distances": "node-position" }), "font-size": 10, label: large ? "" : "data(label)", "text-wrap": "wrap", color: colour("--soft"), "text-background-color": paper, "text-background-opacity": 0.92, "text-background-padding": 2, "min-zoomed-font-size": 6 } },
      { selector: "edge[?back]", style: { "line-style": "dashed", "curve-style": "unbundled-bezier", "control-point-distances": [90], "control-point-weights": [0.5], label: "" } },
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
    drawn = { shown, edges, ...arrange(shown, edges, canvas.clientWidth || 800) };
    const { places, large } = drawn;
    const elements = [...shown].map(([id, { node, lines, outcome }]) => {
      const { x, y, width, height } = places.get(id);
      return { data: { id, label: lines.join("\n"), level: node ? node.level : "end", outcome, many: / × \d+/.test(lines.join("")), width, height }, position: { x, y } };
    });
    edges.forEach((edge, i) => {
      const points = edge.points ? edge.points.slice(1, -1) : [];
      const bent = points.length ? bend(places.get(edge.source), places.get(edge.target), points) : { along: [0.5], beside: [0] };
      elements.push({ data: { id: `edge ${i}`, source: edge.source, target: edge.target, label: edgeText(edge), back: edge.back, ...bent } });
    });
    if (large) crowd(edges, elements);
    if (cy) cy.destroy();
    cy = cytoscape({ container: canvas, elements, style: style(), layout: { name: "preset" }, minZoom: 0.03, maxZoom: 3, autoungrabify: true, boxSelectionEnabled: false, hideEdgesOnViewport: large, textureOnViewport: large, pixelRatio: large ? 1 : "auto" });
    cy.on("tap", "node", (event) => { const id = event.target.id(); if (problem.nodes[id]) onSelect(id); });
    cy.on("dbltap", "node", (event) => { const id = event.target.id(); if ((problem.nodes[id]?.children || []).length) onOpen(id); });
    cy.on("dragpan scrollzoom pinchzoom", moved);
    canvas.dataset.nodes = shown.size;
    canvas.setAttribute("aria-label", `Data flow between ${several(shown.size, "node")}; arrows move it, + and - zoom; the lists beside the source say the same`);
    frame();
  }

  let waiting = 0;
  function moved() {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (cy) onMove([cy.zoom(), cy.pan().x, cy.pan().y].map((n) => Number(n.toFixed(3))).join(",")); }, 120);
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

  // Every kernel fits the width. Else the whole where it can be read, else its beginning at a size that can.
  function frame() {
    cy.resize();
    cy.fit(undefined, 16);
    const whole = cy.elements().boundingBox();
    const fitting = (cy.width() - 24) / whole.w;
    const zoom = Math.min(1.15, every ? fitting : Math.max(cy.zoom(), Math.min(0.75, Math.max(fitting, 0.5))));
    if (zoom <= cy.zoom() && cy.zoom() <= 1.15) return;
    cy.zoom(zoom);
    if (zoom * whole.h <= cy.height() && zoom * whole.w <= cy.width()) { cy.center(); return; }
    const x = zoom <= fitting ? (whole.x1 + whole.x2) / 2 : cy.nodes().min((node) => node.position("y")).ele.position("x");
    cy.pan({ x: cy.width() / 2 - x * zoom, y: 14 - whole.y1 * zoom });
  }

  function choose(id) {
    if (!cy) return;
    cy.elements().removeClass("chosen near");
    let node = cy.getElementById(id);
    if (node.empty() && !every) node = cy.getElementById(equalIn(id));
    if (node.empty()) return;
    node.addClass("chosen");
    node.connectedEdges().addClass("near");
    const at = node.renderedPosition();
    if (at.x < 20 || at.y < 20 || at.x > cy.width() - 20 || at.y > cy.height() - 20) cy.center(node);
  }

  // The node that stands for another of its equal neighbours.
  function equalIn(id) {
    for (const row of itemsBelow(problem, scope)) {
      for (const { nodes: ids } of row.items || [row]) if (ids.includes(id)) return ids[0];
    }
    return id;
  }

  function zoomBy(factor) {
    cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
    moved();
  }

  // The wheel scrolls the page; with Ctrl it zooms.
  frameOf.addEventListener("wheel", (event) => { if (!event.ctrlKey && !event.metaKey) event.stopPropagation(); }, { capture: true });
  canvas.addEventListener("keydown", (event) => {
    const acts = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (acts[event.key]) { cy.panBy({ x: acts[event.key][0], y: acts[event.key][1] }); moved(); }
    else if (event.key === "+" || event.key === "=") zoomBy(1.3);
    else if (event.key === "-") zoomBy(1 / 1.3);
    else if (event.key === "0") cy.fit(undefined, 16);
    else return;
    event.preventDefault();
  });

  return {
    element: frameOf,
    show, choose, zoom: zoomBy,
    draws: (id) => cy !== null && cy.getElementById(every ? id : equalIn(id)).nonempty(),
    whole: () => { if (cy) { cy.fit(undefined, 16); moved(); } },
    restore: (text) => { const [zoom, x, y] = text.split(",").map(Number); if ([zoom, x, y].every(Number.isFinite)) cy.viewport({ zoom, pan: { x, y } }); },
    recolour: () => cy && cy.style(style()),
    resize: () => cy && cy.resize(),
    frame: () => cy && frame(),
    svg: () => toSvg(drawn),
    destroy: () => { if (cy) cy.destroy(); cy = null; },
  };
}
