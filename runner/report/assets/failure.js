// What explains a problem that did not pass: the checks, the source with the line, the log, the command to repeat it.

async function failure(row, number, gates, nodes) {
  const [data] = await Promise.all([unpack(`failure-${number}`), library("highlight")]);
  if (!data) return null;
  const bad = (gates || []).flatMap((gate) => gate.checks.filter(([, verdict]) => !GOOD.has(verdict)).map(([component, verdict, reason, diff]) => ({ gate: gate.gate, component, verdict, reason, diff })));
  const parts = [
    h("section", { "aria-labelledby": "repeat" }, h("h2", { id: "repeat" }, "Do it again"),
      h("div.command", {}, h("code", {}, data.command), copyButton(() => data.command))),
    bad.length ? h("section", { "aria-labelledby": "checks" }, h("h2", { id: "checks" }, `Checks that did not pass: ${bad.length}`),
      h("ul.uses", {}, bad.slice(0, 30).map((check) => h("li", {}, badge(check.verdict), ` ${check.gate}: `, check.component === "" ? "the whole" : check.component,
        // The reason that heads the page is said there.
        check.reason && !(row.reason || "").includes(check.reason) ? h("div.why", {}, check.reason) : null)), bad.length > 30 ? h("li", {}, `and ${bad.length - 30} more`) : null)) : null,
    data.source ? h("section", { "aria-labelledby": "source" }, h("h2", { id: "source" }, "Its source"),
      codeView([{ name: `${row.name}.py`, text: data.source, line: row.source_line ?? callOf(bad, nodes) }]).element)
      : h("section", {}, h("p", {}, "Its source is not beside the results, or has been changed since.")),
    h("section", { "aria-labelledby": "log" }, h("div.bar", {}, h("h2", { id: "log" }, "Its log"), data.log ? downloadButton("download", "Save the log", () => download(`${row.name}.log`, data.log, "text/plain")) : null),
      data.log ? h("pre.log", { tabindex: "0", role: "group", "aria-label": "Log" }, data.log) : h("p.dim", {}, "Its process printed nothing.")),
  ];
  return h("div.failure", {}, parts.filter(Boolean));
}

// The line that calls the first component whose check did not pass.
function callOf(bad, nodes) {
  const paths = new Map(Object.values(nodes || {}).filter((node) => node.source_line).map((node) => [node.path, node.source_line]));
  return bad.map((check) => paths.get(check.component)).find((line) => line !== undefined);
}
