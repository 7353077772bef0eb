// The address says what is shown; header, colours, keys.

const THEMES = ["auto", "light", "dark"];
let theme = "auto";

function setTheme(name) {
  theme = name;
  if (name === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = name;
  themeButton.textContent = `colours: ${name}`;
  if (current) current.flow.recolour();
  if (plots.size) show();  // Charts are painted anew.
}
const themeButton = h("button", { type: "button", title: "Light, dark, or as the system has it" }, "colours: auto");
themeButton.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(theme));

const isSingle = () => RUN.problems.length === 1 && !RUN.run;
const isComparison = () => document.getElementById("changes") !== null;

function header() {
  const run = RUN.run;
  const pages = [
    isComparison() ? ["#/changes", "changes"] : null,
    isSingle() ? null : ["#/", "overview"],
    ["#/workloads", "workloads"],
    RUN.solved ? ["#/solutions", "solutions"] : null,
  ].filter(Boolean);
  document.getElementById("top").append(...[
    h("a.brand", { href: "#/" }, "kdrun"),
    h("span.title", {}, RUN.title),
    run ? h("span.state", { "data-state": run.state }, run.state) : null,
    run ? h("span.when", {}, run.started) : null,
    h("nav", { "aria-label": "Pages" }, pages.map(([href, page]) => h("a", { href, "data-page": page }, page)), themeButton)].filter(Boolean));
  const options = run ? Object.entries(run.options).map(([k, v]) => `${k}: ${Array.isArray(v) ? v.join(", ") : typeof v === "object" ? JSON.stringify(v) : v}`) : [];
  document.getElementById("foot").append(
    `kdrun ${RUN.version}`, options.length ? h("details", {}, h("summary", {}, "settings of the run"), h("p", {}, options.join(" · "))) : "");
}

// The page that an address names: [its name, its title, its element].
async function pageAt({ parts }) {
  if (parts[0] === "workloads") return ["workloads", "workloads", await workloads()];
  if (parts[0] === "solutions" && RUN.solved) return ["solutions", "solutions", await solutions()];
  if (parts[0] === "changes" && isComparison()) return ["changes", "changes", await changes()];
  if (parts[0] === "p") {
    const label = `${parts[1]}/${parts[2]}`, node = parts[3] || "root";
    return ["problem", node === "root" ? label : `${node}, ${label}`, await problem(label, node)];
  }
  if (isSingle()) return ["problem", RUN.problems[0].label, await problem(RUN.problems[0].label, "root")];
  return ["overview", "", overview()];
}

let shown = null;
async function show() {
  const address = readAddress();
  const main = document.getElementById("main");
  leaveFull();
  const [page, title, view] = await pageAt(address);
  if (location.hash !== "" && readAddress().path !== address.path) return;  // Somebody has gone on meanwhile.
  if (main.firstChild !== view) {
    main.replaceChildren(view);
    if (shown !== null && shown !== address.path) { main.focus({ preventScroll: true }); window.scrollTo(0, 0); }
  }
  main.dataset.page = page;
  shown = address.path;
  document.title = `${[title, RUN.title].filter((text, i, all) => text && all.indexOf(text) === i).join(" · ")} - kdrun`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (page === "overview" && address.state.size) document.getElementById("problems-section").scrollIntoView();
}

window.addEventListener("hashchange", show);
let waiting = 0;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (current) current.flow.resize(); resizePlots(); }, 150);
});
document.addEventListener("keydown", (event) => {
  const typing = /INPUT|SELECT|TEXTAREA/.test(document.activeElement?.tagName || "");
  if (event.key === "/" && !typing) {
    const filter = document.querySelector("input[type=search]");
    if (filter) { event.preventDefault(); filter.focus(); }
  }
  if (event.key === "Escape") {
    leaveFull();
    if (document.activeElement?.type === "search") document.activeElement.blur();
  }
});

async function start() {
  if (typeof DecompressionStream === "undefined") {
    document.getElementById("main").textContent = "This browser is too old for the report: Chrome 80, Firefox 113, Safari 16.4 and newer show it.";
    return;
  }
  RUN = await unpack("run");
  header();
  if (isComparison() && !location.hash) history.replaceState(null, "", "#/changes");
  await show();
  document.documentElement.dataset.ready = "true";
}
start();
