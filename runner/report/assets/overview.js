// The run at a glance, and the table of its problems.

function overview() {
  const rows = RUN.problems;
  return h("div.overview", {},
    h("h1", {}, RUN.title),
    RUN.notes.map((note) => h("p.note", { role: "status" }, note)),
    tiles(rows),
    h("div.pair", {}, levels(rows), failures(rows)),
    problems(rows));
}

function tiles(rows) {
  const sum = (key) => rows.reduce((total, row) => total + (row[key] || 0), 0);
  const most = (key) => rows.reduce((best, row) => ((row[key] || 0) > (best[key] || 0) ? row : best), rows[0] || {});
  const passed = rows.filter((row) => row.status === "passed").length;
  const of = RUN.run ? RUN.run.selected : rows.length;
  const slow = most("seconds"), large = most("memory"), heavy = most("kernel_s");
  const tile = (big, small, extra) => h("div.tile", {}, h("b", {}, big), h("span", {}, small), extra && h("small", {}, extra));
  const link = (row) => h("a", { href: problemLink(row.label) }, row.name);
  return h("section.tiles", { "aria-label": "At a glance" },
    tile(`${passed} of ${of}`, "problems passed", passed ? `${rows.filter((r) => r.bitwise).length} to the last bit` : ""),
    tile(sum("kernels").toLocaleString("en"), "kernel files", several(sum("instances"), "instance")),
    tile(flops(sum("flops")), "one forward pass of each"),
    heavy.kernel_s ? tile(seconds(sum("kernel_s")), "of kernels, measured", ["most: ", link(heavy)]) : null,
    RUN.solved ? solvedTile(tile) : null,
    tile(seconds(sum("seconds")), "of work", RUN.run && RUN.run.wall_s ? `${seconds(RUN.run.wall_s)} on the clock` : ""),
    slow.seconds ? tile(seconds(slow.seconds), "the longest", link(slow)) : null,
    large.memory ? tile(size(large.memory), "the most memory", link(large)) : null);
}

function solvedTile(tile) {
  const { better, solutions } = RUN.solved;
  const count = Object.values(better).reduce((total, [some]) => total + some, 0);
  const kinds = [...LEVELS].reverse().filter((level) => better[level]).map((level) => `${level}s`);
  return tile(String(count), `better ${kinds.join(", ")}`, h("a", { href: "#/solutions" }, `of ${several(solutions, "solution")}`));
}

function levels(rows) {
  const names = [...new Set(rows.map((row) => row.level))].sort();
  const lines = names.map((name) => {
    const own = rows.filter((row) => row.level === name);
    const counts = STATUSES.map((s) => [s, own.filter((row) => row.status === s).length]).filter(([, n]) => n);
    return h("tr", {},
      h("th", { scope: "row" }, h("a", { href: `#/?level=${name}` }, name)),
      h("td.stack", {}, h("div.stack", { role: "img", "aria-label": counts.map(([s, n]) => `${n} ${s}`).join(", ") },
        counts.map(([s, n]) => h("i", { "data-status": s, style: `flex-grow:${n}`, title: `${n} ${s}` }, String(n))))),
      h("td.right", {}, String(own.length)));
  });
  const used = STATUSES.filter((s) => rows.some((row) => row.status === s));
  return h("section", { "aria-labelledby": "by-level" },
    h("h2", { id: "by-level" }, "Status by level"),
    h("table.levels", {}, h("tbody", {}, lines)),
    h("p.legend", {}, used.map((s) => h("span", {}, h("i", { "data-status": s }), s.replace("_", " ")))));
}

function failures(rows) {
  const bad = rows.filter((row) => row.status !== "passed").sort((a, b) => (a.ended || "9").localeCompare(b.ended || "9"));
  const lost = rows.filter((row) => row.status === "passed" && row.missing);
  const doubtful = rows.filter((row) => row.status === "passed" && row.health.length);
  const item = (row) => h("li", {}, badge(row.status), " ",
    h("a", { href: problemLink(row.label) }, row.label), h("div.why", {}, reasonOf(row)));
  return h("section", { "aria-labelledby": "why" },
    h("h2", { id: "why" }, bad.length ? "What did not pass first, and why" : "Nothing failed"),
    bad.length ? null : h("p", {}, rows.every((row) => row.bitwise) ? "Each problem's kernels, put together again, equal the original to the last bit." : "Each problem passed every gate."),
    bad.length ? h("ol.failures", { tabindex: "0", "aria-labelledby": "why" }, bad.slice(0, 8).map(item)) : null,
    bad.length > 8 ? h("p", {}, h("a", { href: "#/?status=other" }, `all ${bad.length}`)) : null,
    lost.length ? h("p", {}, `${several(lost.length, "problem")} passed whose files are not all there.`) : null,
    doubtful.length ? h("p", {}, h("a", { href: "#/?status=doubtful" }, several(doubtful.length, "problem")),
      ` passed although ${doubtful.length === 1 ? "its" : "their"} own output says little: mind what each page says.`) : null);
}

function reasonOf(row) {
  const reason = row.reason || "";
  return row.stage && !reason.includes(row.stage) ? `${row.stage}: ${reason}` : reason;
}

function problemColumns(rows) {
  const most = (key) => Math.max(1e-9, ...rows.map((row) => row[key] || 0));
  const [longest, largest, heaviest] = [most("seconds"), most("memory"), most("kernel_s")];
  return [
    { name: "problem", value: (r) => r.label, cell: (r) => h("a", { href: problemLink(r.label) }, breakable(r.level === "custom" ? r.name : r.label)) },
    { name: "status", value: (r) => STATUSES.indexOf(r.status), csv: (r) => r.status, cell: (r) => [badge(r.status),
      r.health.length || r.missing ? h("span.mind", { title: [r.missing, ...r.health].filter(Boolean).join("\n") }, "mind") : null] },
    { name: "kernels", right: true, value: (r) => r.kernels },
    { name: "instances", right: true, wide: true, value: (r) => r.instances },
    { name: "layers", right: true, wide: true, value: (r) => (r.levels ? r.levels.layer || 0 : null) },
    { name: "fusions", right: true, wide: true, value: (r) => (r.levels ? r.levels.fusion || 0 : null) },
    { name: "FLOPs", right: true, wide: true, value: (r) => r.flops, cell: (r) => (r.flops === null ? "" : flops(r.flops)) },
    RUN.measured_on ? { name: "kernel time", about: `All kernel instances, one forward pass, on ${RUN.measured_on}`, right: true, value: (r) => r.kernel_s ?? null,
      cell: (r) => (r.kernel_s ? barred(`${r.untimed ? "≥ " : ""}${seconds(r.kernel_s)}`, r.kernel_s / heaviest) : "") } : null,
    { name: "time", about: "Time that kdrun took to take it apart and verify it", right: true, wide: Boolean(RUN.measured_on), value: (r) => r.seconds, cell: (r) => barred(seconds(r.seconds), r.seconds / longest) },
    { name: "memory", about: "Memory that kdrun needed for it", right: true, wide: true, value: (r) => r.memory, cell: (r) => (r.memory ? barred(size(r.memory), r.memory / largest) : "") },
  ].filter(Boolean);
}

function problems(rows) {
  const listed = table({ caption: "Problems", columns: problemColumns(rows), rows, order: ["problem", false], key: "sort", file: "problems" });
  const count = h("output", { "aria-live": "polite" });
  const search = h("input", { type: "search", placeholder: "Filter by name, operation, file, shape or reason", "aria-label": "Filter problems by name, operation, file, shape or reason", id: "filter" });
  const level = choice("Level", ["all levels", ...new Set(rows.map((r) => r.level))]);
  const status = choice("Status", ["any status", ...STATUSES.filter((s) => rows.some((r) => r.status === s)), "other", "doubtful"]);
  const { state } = readAddress();
  search.value = state.get("q") || "";
  if (state.has("level")) level.value = state.get("level");
  if (state.has("status")) status.value = state.get("status");
  let texts = rows.map((row) => textOf(row, ""));
  function filter() {
    const matches = matcher(search.value);
    const some = rows.filter((row, i) => matches(texts[i])
      && (level.selectedIndex < 1 || row.level === level.value)
      && (status.selectedIndex < 1 || row.status === status.value
        || (status.value === "other" && row.status !== "passed")
        || (status.value === "doubtful" && row.status === "passed" && row.health.length > 0)));
    listed.show(some.length === rows.length ? rows : some);
    count.textContent = some.length === rows.length ? several(rows.length, "problem") : `${some.length} of ${several(rows.length, "problem")}`;
  }
  function changed() {
    filter();
    remember({ q: search.value, level: level.selectedIndex > 0 && level.value, status: status.selectedIndex > 0 && status.value });
  }
  for (const control of [search, level, status]) control.addEventListener("input", changed);
  filter();
  unpack("search").then((words) => { texts = rows.map((row, i) => textOf(row, words[i])); if (search.value) filter(); document.documentElement.dataset.searchable = "true"; });
  return h("section", { "aria-labelledby": "problems", id: "problems-section" },
    h("h2", { id: "problems" }, "Problems"),
    h("div.controls", { role: "search" }, search, level, status, count, listed.csv),
    listed.element);
}

function textOf(row, words) {
  return `${row.label} ${row.status} ${row.reason || ""} ${row.health.join(" ")} ${words}`.toLowerCase();
}

function choice(label, values) {
  return h("select", { "aria-label": label }, values.map((value) => h("option", { value }, value.replace("_", " "))));
}
