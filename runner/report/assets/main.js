// The address says what is shown; header, colours, keys.

const THEMES = ["auto", "light", "dark"];
let theme = "auto";

function setTheme(name) {
  theme = name;
  if (name === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = name;
  themeButton.textContent = `colours: ${name}`;
  if (current) current.flow.recolour();
  if (location.hash.startsWith("#/workloads")) show();
}
const themeButton = h("button", { type: "button", title: "Light, dark, or as the system has it" }, "colours: auto");
themeButton.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(theme));

function header() {
  const run = RUN.run;
  const one = RUN.problems.length === 1 && !run;
  document.getElementById("top").append(...[
    h("a.brand", { href: "#/" }, "kdrun"),
    h("span.title", {}, RUN.title),
    run ? h("span.state", { "data-state": run.state }, run.state) : null,
    run ? h("span.when", {}, run.started) : null,
    h("nav", { "aria-label": "Pages" },
      one ? null : h("a", { href: "#/", "data-page": "overview" }, "overview"),
      h("a", { href: "#/workloads", "data-page": "workloads" }, "workloads"), themeButton)].filter(Boolean));
  const options = run ? Object.entries(run.options).map(([k, v]) => `${k}: ${Array.isArray(v) ? v.join(", ") : v}`) : [];
  document.getElementById("foot").append(
    `kdrun ${RUN.version}`, options.length ? h("details", {}, h("summary", {}, "settings of the run"), h("p", {}, options.join(" · "))) : "");
}

let shown = "";
async function show() {
  const [path] = location.hash.slice(1).split("?");
  const parts = path.split("/").filter(Boolean);
  const main = document.getElementById("main");
  let page = "overview", view;
  if (parts[0] === "workloads") { page = "workloads"; view = await workloads(); }
  else if (parts[0] === "p") {
    page = "problem";
    view = await problem(`${parts[1]}/${parts[2]}`, parts[3] ? decodeURIComponent(parts[3]) : "root");
  } else if (RUN.problems.length === 1 && !RUN.run) { page = "problem"; view = await problem(RUN.problems[0].label, "root"); }
  else view = overview();
  if (main.firstChild !== view) {
    main.replaceChildren(view);
    if (shown) { main.focus({ preventScroll: true }); window.scrollTo(0, 0); }
  }
  main.dataset.page = page;
  shown = path;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (location.hash.includes("?")) document.getElementById("problems-section")?.scrollIntoView();
}

window.addEventListener("hashchange", show);
let waiting = 0;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (current) current.flow.resize(); if (plot && document.body.contains(plot.root)) plot.setSize({ width: plot.root.parentElement.clientWidth, height: 280 }); }, 150);
});
document.addEventListener("keydown", (event) => {
  const typing = /INPUT|SELECT|TEXTAREA/.test(document.activeElement?.tagName || "");
  if (event.key === "/" && !typing) {
    const filter = document.querySelector("input[type=search]");
    if (filter) { event.preventDefault(); filter.focus(); }
  }
  if (event.key === "Escape" && document.activeElement?.type === "search") document.activeElement.blur();
});

header();
show().then(() => { document.documentElement.dataset.ready = "true"; });
