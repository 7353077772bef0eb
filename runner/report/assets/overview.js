// The run at a glance, and the table of its problems.

function overview() {
  const rows = RUN.problems;
  return h("div.overview", {},
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
  const slow = most("seconds"), large = most("memory");
  const tile = (big, small, extra) => h("div.tile", {}, h("b", {}, big), h("span", {}, small), extra && h("small", {}, extra));
  const link = (row, text) => h("a", { href: problemLink(row.label) }, text);
  return h("section.tiles", { "aria-label": "At a glance" },
    tile(`${passed} of ${of}`, "problems passed", passed ? `${rows.filter((r) => r.bitwise).length} to the last bit` : ""),
    tile(sum("kernels").toLocaleString("en"), "kernel files", several(sum("instances"), "instance")),
    tile(flops(sum("flops")), "one forward pass of each"),
    tile(seconds(sum("seconds")), "of work", RUN.run && RUN.run.wall_s ? `${seconds(RUN.run.wall_s)} on the clock` : ""),
    slow.seconds ? tile(seconds(slow.seconds), "the longest", link(slow, slow.name)) : null,
    large.memory ? tile(size(large.memory), "the most memory", link(large, large.name)) : null);
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
  const item = (row, text) => h("li", {}, badge(row.status), " ",
    h("a", { href: problemLink(row.label) }, row.label), h("div.why", {}, text));
  return h("section", { "aria-labelledby": "why" },
    h("h2", { id: "why" }, bad.length ? "What did not pass first, and why" : "Nothing failed"),
    bad.length ? null : h("p", {}, rows.every((row) => row.bitwise) ? "Each problem's kernels, put together again, equal the original to the last bit." : "Each problem passed every gate."),
    bad.length ? h("ol.failures", {}, bad.slice(0, 8).map((row) => item(row, reasonOf(row)))) : null,
    bad.length > 8 ? h("p", {}, h("a", { href: "#/?status=other" }, `all ${bad.length}`)) : null,
    lost.length ? h("p", {}, `${several(lost.length, "problem")} passed whose files are not all there.`) : null,
    doubtful.length ? h("p", {}, h("a", { href: "#/?status=doubtful" }, several(doubtful.length, "problem")),
      ` passed although ${doubtful.length === 1 ? "its" : "their"} own output says little: mind what each page says.`) : null);
}

function reasonOf(row) {
  const reason = row.reason || "";
  return row.stage && !reason.includes(row.stage) ? `${row.stage}: ${reason}` : reason;
}

function problems(rows) {
  const most = (key) => Math.max(1e-9, ...rows.map((row) => row[key] || 0));
  const [longest, largest] = [most("seconds"), most("memory")];
  const columns = [
    { name: "problem", value: (r) => r.label, cell: (r) => h("a", { href: problemLink(r.label) }, r.level === "custom" ? r.name : r.label) },
    { name: "status", value: (r) => STATUSES.indexOf(r.status), cell: (r) => [badge(r.status),
      r.health.length || r.missing ? h("span.mind", { title: [r.missing, ...r.health].filter(Boolean).join("\n") }, "mind") : null] },
    { name: "kernels", right: true, value: (r) => r.kernels },
    { name: "instances", right: true, wide: true, value: (r) => r.instances },
    { name: "layers", right: true, wide: true, value: (r) => (r.levels ? r.levels.layer : null) },
    { name: "fusions", right: true, wide: true, value: (r) => (r.levels ? r.levels.fusion : null) },
    { name: "FLOPs", right: true, wide: true, value: (r) => r.flops, cell: (r) => (r.flops === null ? "" : flops(r.flops)) },
    { name: "time", right: true, value: (r) => r.seconds, cell: (r) => barred(seconds(r.seconds), r.seconds / longest) },
    { name: "memory", right: true, wide: true, value: (r) => r.memory, cell: (r) => (r.memory ? barred(size(r.memory), r.memory / largest) : "") },
  ];
  const listed = table("Problems", columns, rows, ["problem", false]);
  const count = h("output", { "aria-live": "polite" });
  const search = h("input", { type: "search", placeholder: "Filter by name, operation or reason", "aria-label": "Filter problems", id: "filter" });
  const level = choice("Level", ["all levels", ...new Set(rows.map((r) => r.level))]);
  const status = choice("Status", ["any status", ...STATUSES.filter((s) => rows.some((r) => r.status === s)), "other", "doubtful"]);
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const some = rows.filter((row) => {
      const text = `${row.label} ${row.status} ${row.reason || ""} ${row.health.join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word))
        && (level.selectedIndex === 0 || row.level === level.value)
        && (status.selectedIndex === 0 || row.status === status.value
          || (status.value === "other" && row.status !== "passed")
          || (status.value === "doubtful" && row.status === "passed" && row.health.length > 0));
    });
    listed.show(some);
    count.textContent = some.length === rows.length ? several(rows.length, "problem") : `${some.length} of ${several(rows.length, "problem")}`;
  }
  for (const control of [search, level, status]) control.addEventListener("input", filter);
  const asked = new URLSearchParams(location.hash.split("?")[1] || "");
  if (asked.has("level")) level.value = asked.get("level");
  if (asked.has("status")) status.value = asked.get("status");
  filter();
  return h("section", { "aria-labelledby": "problems", id: "problems-section" },
    h("h2", { id: "problems" }, "Problems"),
    h("div.controls", { role: "search" }, search, level, status, count),
    listed.element);
}

function choice(label, values) {
  return h("select", { "aria-label": label }, values.map((value) => h("option", { value }, value.replace("_", " "))));
}
