// Source files in tabs: coloured, numbered, the docstring folded, to copy and to take away.

// files: [{name, text, line}]; the library that colours must have been loaded.
function codeView(files, ...buttons) {
  const code = h("div.code", { role: "tabpanel", "aria-label": "Source" });
  const tabs = files.map((file, i) => h("button", { type: "button", role: "tab", "aria-selected": "false", tabindex: i ? "-1" : "0", title: file.name }, file.name.split("/").pop()));
  let opened = 0;
  function open(index, line) {
    opened = index;
    tabs.forEach((tab, i) => { tab.setAttribute("aria-selected", String(i === index)); tab.tabIndex = i === index ? 0 : -1; });
    code.replaceChildren(...highlighted(files[index].text || "", line));
    const mark = code.querySelector("mark");
    const reveal = () => { if (mark) mark.closest("pre").scrollTop = mark.offsetTop - 120; };
    if (code.isConnected) reveal(); else requestAnimationFrame(reveal);
  }
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => open(i, files[i].line));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) { const next = (i + step + tabs.length) % tabs.length; open(next, files[next].line); tabs[next].focus(); }
    });
  });
  const copy = copyButton(() => files[opened].text);
  const take = downloadButton("download", "Save this file", () => download(files[opened].name.split("/").pop(), files[opened].text, "text/x-python"));
  open(0, files[0].line);
  const element = h("div.sources", {}, h("div.filebar", {}, h("div.tabs", { role: "tablist", "aria-label": "Files" }, tabs), h("div.filetools", {}, copy, take, buttons)), code);
  return { element, open };
}

function copyButton(text) {
  const button = h("button.small", { type: "button" }, "copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    button.textContent = "copied";
  });
  return button;
}

// Elements of a source: its docstring, folded, and the rest from its first line of code on.
function highlighted(text, marked) {
  const lines = hljs.highlight(text.replace(/\n$/, ""), { language: "python", ignoreIllegals: true }).value.split("\n");
  // A string over several lines is one span for the highlighter: each line closes and opens it again.
  let open = "";
  const numbered = lines.map((line, i) => {
    const whole = open + line;
    const stack = [];
    for (const tag of whole.match(/<span class="[^"]*">|<\/span>/g) || []) { if (tag === "</span>") stack.pop(); else stack.push(tag); }
    open = stack.join("");
    const inner = whole + "</span>".repeat(stack.length);
    return `<span class="line" data-n="${i + 1}">${i + 1 === marked ? `<mark>${inner || " "}</mark>` : inner}</span>`;
  });
  const block = (some, name) => {
    const pre = h("pre", { tabindex: "0", role: "group", "aria-label": name });
    pre.innerHTML = `<code>${some.join("\n")}</code>`;
    return pre;
  };
  const docstring = docstringLines(text);
  if (!docstring) return [block(numbered, "code")];
  let first = docstring;
  while (first < lines.length - 1 && !lines[first].trim()) first += 1;
  return [
    h("details.docstring", { open: marked !== undefined && marked <= docstring }, h("summary", {}, `docstring, ${several(docstring, "line")}`), block(numbered.slice(0, docstring), "docstring")),
    block(numbered.slice(first), "code"),
  ];
}

// How many lines at the beginning are the docstring.
function docstringLines(text) {
  const found = /^\s*[rR]?("""|''')[\s\S]*?\1[^\n]*/.exec(text);
  return found ? found[0].split("\n").length : 0;
}
