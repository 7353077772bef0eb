// Elements, words for figures, and the data that is embedded in the page.

const RUN = JSON.parse(document.getElementById("run").textContent);
const LEVELS = ["model", "layer", "fusion", "kernel"];
const STATUSES = ["passed", "failed", "error", "crashed", "too_large", "timeout", "cancelled"];
const DTYPES = {
  float32: "fp32", float16: "fp16", bfloat16: "bf16", float64: "fp64", int64: "i64", int32: "i32",
};

// h("a.name", {href: "#"}, "text", child): what is text stays text, whatever is in it.
function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") element.style.cssText = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function scaled(value, base, units) {
  let unit = 0;
  while (value >= base && unit < units.length - 1) { value /= base; unit += 1; }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
const flops = (n) => scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
const size = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const percent = (x) => `${(100 * x).toFixed(1)}%`;
const shape = (dims) => dims.join("×") || "scalar";
const several = (n, noun) => (n === 1 ? `1 ${noun}` : `${n.toLocaleString("en")} ${noun}s`);

function seconds(value) {
  if (value < 60) return `${value.toFixed(1)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(value % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// "8×128 fp32 ×256": equal neighbours are counted.
function tensors(shapes, dtypes) {
  const words = shapes.map((s, i) => `${shape(s)} ${DTYPES[dtypes[i]] || dtypes[i]}`);
  const runs = [];
  for (const word of words) {
    const last = runs[runs.length - 1];
    if (last && last[0] === word) last[1] += 1;
    else runs.push([word, 1]);
  }
  return runs.map(([word, n]) => (n === 1 ? word : `${word} ×${n}`)).join(", ") || "nothing";
}

// What was packed by gzip and base64, as JSON; kept, so that going back is instant.
const unpacked = new Map();
async function unpack(id) {
  if (!unpacked.has(id)) {
    const packed = document.getElementById(id).textContent;
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(id, await new Response(stream).json());
  }
  return unpacked.get(id);
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const problemLink = (label, node) =>
  `#/p/${label}${node && node !== "root" ? `/${encodeURIComponent(node)}` : ""}`;
const badge = (status) => h("span.badge", { "data-status": status }, status.replace("_", " "));
const levelMark = (level) => h("span.level", { "data-level": level }, level);

// A table whose columns sort: {name, key, value(row), cell(row), right, wide, first}.
function table(caption, columns, rows, order) {
  let [by, down] = order;
  const body = h("tbody");
  const heads = columns.map((column) => {
    const button = h("button", { type: "button", title: `Sort by ${column.name}` }, column.name);
    button.addEventListener("click", () => {
      down = by === column ? !down : Boolean(column.right);
      by = column;
      draw();
    });
    return h(`th${column.right ? ".right" : ""}${column.wide ? ".wide" : ""}`, { scope: "col" }, button);
  });
  // Made once: filtering and sorting only move them.
  const lines = new Map(rows.map((row) => [row, h("tr", {}, columns.map((column) => {
    const tag = `td${column.right ? ".right" : ""}${column.wide ? ".wide" : ""}`;
    return h(tag, {}, column.cell ? column.cell(row) : String(column.value(row) ?? ""));
  }))]));
  let shown = rows;
  function draw() {
    const sorted = [...shown].sort((a, b) => {
      const [x, y] = [by.value(a), by.value(b)];
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      const sign = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
      return down ? -sign : sign;
    });
    body.replaceChildren(...sorted.map((row) => lines.get(row)));
    heads.forEach((head, i) => {
      if (columns[i] === by) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }
  by = columns.find((column) => column.name === by) || columns[0];
  draw();
  const element = h("div.scroll", {}, h("table", {},
    h("caption.unseen", {}, caption), h("thead", {}, h("tr", {}, heads)), body));
  return { element, show(some) { shown = some; draw(); } };
}

// A figure with a bar behind it, its length a part of the largest.
function barred(text, part) {
  const width = Number.isFinite(part) ? Math.max(0, Math.min(1, part)) * 100 : 0;
  return h("span.barred", { style: `--part:${width.toFixed(1)}%` }, text);
}
