// Elements, and words for figures.

let RUN = null;  // What the first view shows; main.js unpacks it.
const LEVELS = ["model", "layer", "fusion", "kernel"];
const STATUSES = ["passed", "written", "failed", "error", "crashed", "too_large", "timeout", "cancelled"];
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
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
const flops = (n) => scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
const size = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const perSecond = (n, unit) => (unit === "FLOP" ? `${flops(n)}/s` : `${scaled(n, 1000, ["B", "kB", "MB", "GB", "TB"])}/s`);
const percent = (x) => `${(100 * x).toFixed(1)}%`;
const shape = (dims) => dims.join("×") || "scalar";
const several = (n, noun) => (n === 1 ? `1 ${noun}` : `${n.toLocaleString("en")} ${noun}s`);

const three = (x) => Number(x.toPrecision(3));

function seconds(value) {
  if (value < 1e-3) return `${three(value * 1e6)} µs`;
  if (value < 1) return `${three(value * 1e3)} ms`;
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

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const badge = (status) => h("span.badge", { "data-status": status }, status.replace("_", " "));
// A name that breaks after underscores where it has to.
const breakable = (name) => name.split(/(?<=[_/])(?!\d+$)/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));
const levelMark = (level) => h("span.level", { "data-level": level }, level);
