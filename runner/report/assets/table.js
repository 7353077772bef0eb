// A table whose columns sort, whose rows open, and which grows as one reads on.

const ROWS_AT_ONCE = 60;
const inOrder = new Intl.Collator("en", { numeric: true });

// columns: {name, value(row), cell(row), right, wide}; order: [name, down]; `open(row)`: what a row shows below
// itself; `key`: the name of its order in the address.
function table({ caption, columns, rows, order, open, key, file }) {
  let by = columns.find((column) => column.name === order[0]) || columns[0], down = order[1];
  const asked = key && readAddress().state.get(key);
  if (asked) {
    by = columns.find((column) => column.name === asked.replace(/^-/, "")) || by;
    down = asked.startsWith("-");
  }
  const body = h("tbody");
  const heads = columns.map((column) => {
    const button = h("button", { type: "button", title: column.about }, column.name);
    button.addEventListener("click", () => {
      down = by === column ? !down : Boolean(column.right);
      by = column;
      if (key) remember({ [key]: (down ? "-" : "") + column.name });
      sort();
      draw();
    });
    return h(`th${column.right ? ".right" : ""}${column.wide ? ".wide" : ""}`, { scope: "col" }, button);
  });
  const lines = new Map();
  function line(row) {
    if (!lines.has(row)) {
      lines.set(row, h("tr", {}, columns.map((column, i) => h(`td${column.right ? ".right" : ""}${column.wide ? ".wide" : ""}`, {},
        open && i === 0 ? opener(row, column) : column.cell ? column.cell(row) : String(column.value(row) ?? "")))));
    }
    return lines.get(row);
  }
  function opener(row, column) {
    const button = h("button.opener", { type: "button", "aria-expanded": "false" }, breakable(column.value(row)));
    let below = null;
    button.addEventListener("click", async () => {
      const opened = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(opened));
      if (!opened) { below.remove(); return; }
      if (!below) below = h("tr.below", {}, h("td", { colspan: columns.length }, await open(row)));
      if (button.isConnected) line(row).after(below);
    });
    return button;
  }

  let sorted = [], kept = rows, shown = [], count = 0;
  function sort() {
    const compare = (a, b) => {
      const [x, y] = [by.value(a), by.value(b)];
      if (x === null || x === undefined) return y === null || y === undefined ? 0 : 1;
      if (y === null || y === undefined) return -1;
      const sign = typeof x === "string" ? inOrder.compare(x, y) : x - y;
      return down ? -sign : sign;
    };
    sorted = [...rows].sort(compare);
    heads.forEach((head, i) => {
      if (columns[i] === by) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }
  const more = h("button.more-rows", { type: "button", onclick: () => grow() });
  function draw() {
    const members = kept === rows ? null : new Set(kept);
    shown = members ? sorted.filter((row) => members.has(row)) : sorted;
    count = 0;
    body.replaceChildren();
    grow();
  }
  function grow() {
    const next = shown.slice(count, count + ROWS_AT_ONCE);
    body.append(...next.map(line));
    count += next.length;
    more.hidden = count >= shown.length;
    more.textContent = `${(shown.length - count).toLocaleString("en")} more rows`;
  }
  new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting) && !more.hidden) grow(); }, { rootMargin: "300px" }).observe(more);

  sort();
  draw();
  const csv = downloadButton("CSV", `The rows that are shown, as ${file}.csv`, () => download(`${file}.csv`, toCsv(columns, shown), "text/csv"));
  const element = h("div.scroll", {}, h("table", {}, h("caption.unseen", {}, caption), h("thead", {}, h("tr", {}, heads)), body), more);
  return { element, csv, show(some) { kept = some; draw(); } };
}

function toCsv(columns, rows) {
  const quoted = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = rows.map((row) => columns.map((column) => quoted((column.csv || column.value)(row))).join(","));
  return `${[columns.map((column) => quoted(column.name)).join(","), ...lines].join("\n")}\n`;
}

// A figure with a bar below it, its length a part of the largest.
function barred(text, part) {
  const width = Number.isFinite(part) ? Math.max(0, Math.min(1, part)) * 100 : 0;
  return h("span.barred", { style: `--part:${width.toFixed(1)}%` }, text);
}
