// The parts that are packed inside the page: data and libraries, unpacked when they are needed.

const unpacked = new Map();

function unpackText(id) {
  const packed = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// A block's JSON; kept, so that going back is instant. Null if the page has no such block.
async function unpack(id) {
  if (!unpacked.has(id)) unpacked.set(id, document.getElementById(id) ? unpackText(id).then(JSON.parse) : null);
  return unpacked.get(id);
}

// Runs a library, once; it then is a global variable, as its own documentation says.
async function library(name) {
  const id = `library-${name}`;
  if (!unpacked.has(id)) unpacked.set(id, unpackText(id).then((text) => { document.head.append(h("script", {}, text)); }));
  return unpacked.get(id);
}

function download(name, content, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function downloadButton(text, title, act) {
  return h("button.small", { type: "button", title, onclick: act }, text);
}
