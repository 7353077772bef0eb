// Panes whose borders are dragged, and which fill the window.

const widths = { left: 21, right: 34 };  // Percent of the window; kept from one problem to the next.

// A border between two panes: dragged, or moved by arrow keys.
function splitter(side, panes, onChange) {
  const [low, high] = [12, 60];
  const element = h("div.splitter", { role: "separator", "aria-orientation": "vertical", tabindex: "0", "aria-label": side === "left" ? "Width of the hierarchy" : "Width of the code", "aria-valuemin": low, "aria-valuemax": high });
  function move(percentage) {
    widths[side] = Math.max(low, Math.min(high, percentage, 88 - widths[side === "left" ? "right" : "left"]));
    apply();
    onChange();
  }
  function apply() {
    panes.style.setProperty(`--${side}`, `${widths[side]}%`);
    element.setAttribute("aria-valuenow", String(Math.round(widths[side])));
  }
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const frame = panes.getBoundingClientRect();
    move((100 * (side === "left" ? event.clientX - frame.left : frame.right - event.clientX)) / frame.width);
  });
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (!step) return;
    event.preventDefault();
    move(widths[side] + (side === "left" ? step : -step));
  });
  apply();
  return element;
}

// A button that lets a pane fill the window, and Escape that ends it.
function fullButton(text, title, pane, onChange) {
  const button = h("button.small", { type: "button", title, "aria-pressed": "false" }, text);
  function set(full) {
    pane().classList.toggle("full", full);
    button.setAttribute("aria-pressed", String(full));
    document.body.classList.toggle("covered", full);
    onChange();
  }
  button.addEventListener("click", () => set(!pane().classList.contains("full")));
  button.leave = () => { if (pane().classList.contains("full")) set(false); };
  return button;
}

function leaveFull() {
  for (const button of document.querySelectorAll('[aria-pressed="true"]')) button.leave?.();
}
