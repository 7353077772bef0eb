// The hierarchy as a tree that opens: ARIA's tree pattern, children made when they are first seen.

const MOST_CHILDREN = 80;

function outline(nodes, onSelect) {
  const items = new Map();
  const root = h("ul.outline", { role: "tree", "aria-label": "Hierarchy" });

  function item(id, depth) {
    const node = nodes[id];
    const children = node.children || [];
    const row = h("div.row", {},
      h("span.twist", { "aria-hidden": "true" }, children.length ? "▸" : ""),
      levelMark(node.level),
      h("span.name", {}, node.name),
      node.instance_count > 1 ? h("span.times", { title: `${node.instance_count} instances of this workload` }, `×${node.instance_count}`) : null);
    const element = h("li", {
      role: "treeitem", "aria-level": depth, "aria-selected": "false", tabindex: "-1",
      "aria-expanded": children.length ? "false" : undefined, "aria-label": `${node.level} ${node.name}`,
    }, row);
    element.dataset.id = id;
    row.addEventListener("click", (event) => {
      if (event.target.classList.contains("twist") && children.length) toggle(id);
      else { select(id); open(id); }
      element.focus({ preventScroll: true });
    });
    items.set(id, element);
    return element;
  }

  function grow(id) {
    const element = items.get(id);
    if (element.querySelector(":scope > ul")) return;
    const depth = Number(element.getAttribute("aria-level")) + 1;
    const children = nodes[id].children;
    const list = h("ul", { role: "group" }, children.slice(0, MOST_CHILDREN).map((child) => item(child, depth)));
    if (children.length > MOST_CHILDREN) {
      const more = h("button.more", { type: "button" }, `show ${children.length - MOST_CHILDREN} more`);
      more.addEventListener("click", () => more.replaceWith(...children.slice(MOST_CHILDREN).map((child) => item(child, depth))));
      list.append(more);
    }
    element.append(list);
  }

  function open(id) {
    const element = items.get(id);
    if (!(nodes[id].children || []).length) return;
    grow(id);
    element.setAttribute("aria-expanded", "true");
  }
  function close(id) { items.get(id).setAttribute("aria-expanded", "false"); }
  function toggle(id) { if (items.get(id).getAttribute("aria-expanded") === "true") close(id); else open(id); }

  function reveal(id) {
    const above = ancestors(nodes, id);
    for (const parent of above) {
      open(parent);
      const more = items.get(parent).querySelector(":scope > ul > button.more");
      const next = above[above.indexOf(parent) + 1] || id;
      if (more && !items.has(next)) more.click();
    }
    for (const element of root.querySelectorAll('[aria-selected="true"]')) {
      element.setAttribute("aria-selected", "false");
      element.tabIndex = -1;
    }
    const element = items.get(id);
    element.setAttribute("aria-selected", "true");
    element.tabIndex = 0;
    const row = element.firstChild.getBoundingClientRect(), frame = root.getBoundingClientRect();
    if (row.top < frame.top || row.bottom > frame.bottom) root.scrollTop += row.top - frame.top - frame.height / 3;
  }
  function select(id) { onSelect(id); }

  root.addEventListener("keydown", (event) => {
    const current = document.activeElement.closest("[role=treeitem]");
    if (!current || event.target.tagName === "BUTTON") return;
    const id = current.dataset.id;
    const seen = [...root.querySelectorAll("[role=treeitem]")].filter((element) => element.offsetParent !== null);
    const at = seen.indexOf(current);
    const expanded = current.getAttribute("aria-expanded");
    const parent = current.parentElement.closest("[role=treeitem]");
    const moves = {
      ArrowDown: () => focus(seen[at + 1]),
      ArrowUp: () => focus(seen[at - 1]),
      Home: () => focus(seen[0]),
      End: () => focus(seen[seen.length - 1]),
      ArrowRight: () => (expanded === "false" ? open(id) : expanded === "true" && focus(seen[at + 1])),
      ArrowLeft: () => (expanded === "true" ? close(id) : focus(parent)),
      Enter: () => select(id),
      " ": () => select(id),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
  function focus(element) { if (element) { element.tabIndex = 0; element.focus(); } }

  root.append(item("root", 1));
  open("root");
  return { element: root, reveal };
}

// Ids from the root down to the parent.
function ancestors(nodes, id) {
  if (!nodes.parents) {
    const parents = {};
    for (const [key, node] of Object.entries(nodes)) for (const child of node.children || []) parents[child] = key;
    Object.defineProperty(nodes, "parents", { value: parents });
  }
  const above = [];
  for (let up = nodes.parents[id]; up !== undefined; up = nodes.parents[up]) above.unshift(up);
  return above;
}
