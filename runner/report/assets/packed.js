// The parts that are packed inside the page: data and libraries, unpacked when they are needed.

const unpacked = new Map();

// The parts that are in files of a folder beside the page: a script hands over what is packed in it.
function readFile(id) {
  return new Promise((resolve) => {
    const script = h("script", { src: `${encodeURIComponent(document.documentElement.dataset.folder)}/${id}.js` });
    script.onload = () => resolve(window.kdrunPacked);
    script.onerror = () => resolve(null);
    window.kdrunBlock = (packed) => { window.kdrunPacked = packed; };
    document.head.append(script);
  });
}

async function findPacked(id) {
  const block = document.getElementById(id);
  if (block) return block.textContent;
  return document.documentElement.dataset.folder && /^((problem|folder|failure)-|shared$)/.test(id) ? readFile(id) : null;
}

async function unpackText(id) {
  const packed = await findPacked(id);
  if (packed === null) return "null";
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// A block's JSON; kept, so that going back is instant. Null if the page has no such block.
async function unpack(id) {
  if (!unpacked.has(id)) unpacked.set(id, unpackText(id).then(JSON.parse));
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
