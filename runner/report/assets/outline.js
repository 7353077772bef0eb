// The hierarchy as a tree that opens (ARIA's tree pattern): equal neighbours share an item, whose inside is shown once.

const MOST_CHILDREN = 80;

// Items below a node: {turns, nodes: [ids]} for equal neighbours, {turns, items} for items that take turns.
function itemsBelow(problem, id) {
  const rows = problem.rows[id];
  if (!rows) return (problem.nodes[id].children || []).map((child) => ({ nodes: [child] }));
  return rows.map(([turns, items]) => (turns === 1
    ? { nodes: items[0] }
    : { turns, items: items.map((nodes) => ({ nodes })) }));
}

// The node whose item shows a node: the first of its equals, within the first of each parent's equals.
function shownFor(problem, id) {
  if (!problem.shown) Object.defineProperty(problem, "shown", { value: new Map([["root", "root"]]) });
  if (problem.shown.has(id)) return problem.shown.get(id);
  const { nodes } = problem;
  const parent = ancestors(nodes, id).pop();
  const place = nodes[parent].children.indexOf(id);
  const same = nodes[shownFor(problem, parent)].children[place];
  const item = itemsBelow(problem, ancestors(nodes, same).pop()).flatMap((one) => one.items || [one]).find((one) => one.nodes.includes(same));
  problem.shown.set(id, item.nodes[0]);
  return item.nodes[0];
}

// "blocks_0 … blocks_3", or "" where the title says the same.
function authorNames(problem, ids) {
  const { nodes, titles } = problem;
  const title = titles[nodes[ids[0]].path].replaceAll(" ", "_");
  const [first, last] = [nodes[ids[0]].name, nodes[ids[ids.length - 1]].name];
  const bare = first.replace(/_\d+$/, "");
  if (title === bare || title.startsWith(`${bare}_`) || bare.endsWith(title) || first.startsWith(`${title}_`)) return ids.length > 1 && first !== last && bare !== title ? `${first} … ${last}` : "";
  if (first === last) return first;
  return `${first}${ids.length > 2 ? " … " : ", "}${last}`;
}

function outline(problem, onSelect) {
  const { nodes, titles } = problem;
  const elements = new Map();
  const root = h("ul.outline", { role: "tree", "aria-label": "Hierarchy" });

  function item({ nodes: ids, turns, items }, depth) {
    const node = ids && nodes[ids[0]];
    const below = items || (node.children || []);
    const name = node ? titles[node.path] : `× ${turns}, in turn`;
    const names = ids ? authorNames(problem, ids) : "";
    const row = h("div.row", {},
      h("span.twist", { "aria-hidden": "true" }, below.length ? "▸" : ""),
      node ? levelMark(node.level) : null,
      h("span.name", {}, breakable(name)),
      ids && ids.length > 1 ? h("span.times", { title: `${ids.length} in a row, equal but for their weights` }, `× ${ids.length}`) : null,
      h("span.author", {}, breakable(names)),
      node && solutionFor(problem, node) ? [" ", solutionMark(solutionFor(problem, node))] : null,
      node && solutionsInside(problem, ids[0]).length ? h("span.inside", { title: `${several(solutionsInside(problem, ids[0]).length, "solution")} inside` }, ` · ${several(solutionsInside(problem, ids[0]).length, "solution")}`) : null);
    const element = h("li", {
      role: "treeitem", "aria-level": depth, "aria-selected": node ? "false" : undefined, tabindex: "-1",
      "aria-expanded": below.length ? "false" : undefined,
      "aria-label": node ? `${node.level} ${name}${ids.length > 1 ? `, ${ids.length} times` : ""}${names ? `, ${names}` : ""}${solutionLine(problem, ids[0]).map((line) => `, ${line}`).join("")}` : name,
    }, row);
    element.below = () => (items || itemsBelow(problem, ids[0]));
    if (node) { element.dataset.id = ids[0]; elements.set(ids[0], element); element.dataset.names = names; }
    row.addEventListener("click", (event) => {
      if (!node || (event.target.classList.contains("twist") && below.length)) toggle(element);
      else { onSelect(chosenWithin(ids)); open(element); }
      element.focus({ preventScroll: true });
    });
    if (items) open(element);
    return element;
  }

  // Among equal neighbours, the one that is chosen already stays chosen.
  let chosen = "root";
  const chosenWithin = (ids) => (ids.includes(chosen) ? chosen : ids[0]);

  function grow(element) {
    if (element.querySelector(":scope > ul")) return;
    const depth = Number(element.getAttribute("aria-level")) + 1;
    const below = element.below();
    const list = h("ul", { role: "group" }, withGroups(element.dataset.id, below.slice(0, MOST_CHILDREN), depth));
    if (below.length > MOST_CHILDREN) {
      const more = h("button.more", { type: "button" }, `show ${below.length - MOST_CHILDREN} more`);
      more.addEventListener("click", () => more.parentElement.replaceWith(...below.slice(MOST_CHILDREN).map((one) => item(one, depth))));
      list.append(h("li", { role: "none" }, more));
    }
    element.append(list);
  }

  // Items of a straight line of kernels stand below its name, beside one stroke.
  function withGroups(id, below, depth) {
    const groups = nodes[id]?.groups || [];
    let last = null;
    return below.flatMap((one) => {
      const group = one.nodes ? groups.find((ids) => one.nodes.some((other) => ids.includes(other))) : undefined;
      const element = item(one, depth);
      const title = group && group.map((other) => titles[nodes[other].path]).join(" + ");
      if (group) { element.classList.add("member"); element.setAttribute("aria-label", `${element.getAttribute("aria-label")}, in the group ${title}`); }
      const begins = group && group !== last;
      last = group;
      return begins ? [h("li.group", { role: "none" }, `group: ${title}`), element] : [element];
    });
  }

  function open(element) {
    if (!element.hasAttribute("aria-expanded")) return;
    grow(element);
    element.setAttribute("aria-expanded", "true");
  }
  function close(element) { element.setAttribute("aria-expanded", "false"); }
  function toggle(element) { if (element.getAttribute("aria-expanded") === "true") close(element); else open(element); }

  function reveal(id) {
    const shown = shownFor(problem, id);
    chosen = id;
    const way = [...ancestors(nodes, shown), shown];
    way.forEach((parent, i) => {
      if (i === way.length - 1) return;
      const element = elements.get(parent);
      open(element);
      if (!elements.has(way[i + 1])) element.querySelector("button.more")?.click();
    });
    for (const element of root.querySelectorAll('[aria-selected="true"]')) {
      element.setAttribute("aria-selected", "false");
      element.tabIndex = -1;
      element.querySelector(".author").replaceChildren(...breakable(element.dataset.names));
    }
    const element = elements.get(shown);
    element.setAttribute("aria-selected", "true");
    element.tabIndex = 0;
    if (shown !== id) element.querySelector(".author").textContent = `in ${instanceName(id)}`;
    for (let up = element.parentElement.closest('[aria-expanded="false"]'); up; up = up.parentElement.closest('[aria-expanded="false"]')) open(up);
    open(element);
    const row = element.firstChild.getBoundingClientRect(), frame = root.getBoundingClientRect();
    if (row.top < frame.top || row.bottom > frame.bottom) root.scrollTop += row.top - frame.top - frame.height / 3;
  }

  // "blocks_3", where the item of its equals shows the inside of another.
  function instanceName(id) {
    const outer = [...ancestors(nodes, id), id].find((one) => shownFor(problem, one) !== one);
    return outer === id ? nodes[id].name : outer;
  }

  root.addEventListener("keydown", (event) => {
    const current = document.activeElement.closest("[role=treeitem]");
    if (!current || event.target.tagName === "BUTTON") return;
    const seen = [...root.querySelectorAll("[role=treeitem]")].filter((element) => element.offsetParent !== null);
    const at = seen.indexOf(current);
    const expanded = current.getAttribute("aria-expanded");
    const choose = () => (current.dataset.id ? onSelect(current.dataset.id) : toggle(current));
    const moves = {
      ArrowDown: () => focus(seen[at + 1]),
      ArrowUp: () => focus(seen[at - 1]),
      Home: () => focus(seen[0]),
      End: () => focus(seen[seen.length - 1]),
      ArrowRight: () => (expanded === "false" ? open(current) : expanded === "true" && focus(seen[at + 1])),
      ArrowLeft: () => (expanded === "true" ? close(current) : focus(current.parentElement.closest("[role=treeitem]"))),
      Enter: choose,
      " ": choose,
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
  function focus(element) { if (element) { element.tabIndex = 0; element.focus(); } }

  root.append(item({ nodes: ["root"] }, 1));
  open(elements.get("root"));
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
