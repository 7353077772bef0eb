// The address, `#/page?how=it is looked at`: a link to it shows the same again.

function readAddress() {
  const [path, query] = location.hash.slice(1).split("?");
  return { path, parts: path.split("/").filter(Boolean).map(decodeURIComponent), state: new URLSearchParams(query || "") };
}

// Changes how the present page is looked at, without a new entry in the browser's history.
function remember(changes) {
  const { path, state } = readAddress();
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "" || value === false) state.delete(key); else state.set(key, String(value));
  }
  const query = state.toString();
  history.replaceState(null, "", `#${path || "/"}${query ? `?${query}` : ""}`);
}

// A function that tells whether a text has all words of a query; `2x128x256` is a whole shape, or the end of one;
// `resnet-18` is found as `resnet18`, too.
function matcher(query) {
  const words = query.toLowerCase().replaceAll("×", "x").split(/[\s,]+/).filter(Boolean);
  const tests = words.map((word) => {
    const spellings = word.includes("-") ? [word, word.replaceAll("-", ""), word.replaceAll("-", "_")] : [word];
    if (!/^\d+(x\d+)+$/.test(word)) return (text) => spellings.some((spelling) => text.includes(spelling));
    const whole = new RegExp(`(?<!\\d)${word}(?!\\d)`);
    return (text) => whole.test(text);
  });
  return (text) => tests.every((test) => test(text));
}

const problemLink = (label, node) =>
  `#/p/${label.split("/").map(encodeURIComponent).join("/")}${node && node !== "root" ? `/${encodeURIComponent(node)}` : ""}`;
