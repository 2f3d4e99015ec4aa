// nodes.js - the only place that makes elements. Text is always text: nothing here takes HTML, and
// no other file may use innerHTML and its kin (tests/page/test_sources.py; the page's policy
// forbids them too).

const SVG_SPACE = "http://www.w3.org/2000/svg";

// Properties: a function is a listener ("onclick"), true an empty attribute, null and false none.
function nodeSet(n, props) {
  for (const [name, value] of Object.entries(props || {})) {
    if (typeof value === "function")
      n.addEventListener(name.slice(2), value);
    else if (name.startsWith("on"))
      throw new Error(name + " is text, expected a function");
    else if (value === true)
      n.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false)
      n.setAttribute(name, String(value));
  }
  return n;
}

// Lists may hold lists: a call with a hundred thousand arguments would be too many.
function nodeFill(n, inside) {
  for (const x of inside) {
    if (Array.isArray(x))
      nodeFill(n, x);
    else if (x !== null && x !== undefined && x !== false)
      n.append(x);
  }
  return n;
}

function node(tag, props, ...inside) {
  return nodeFill(nodeSet(document.createElement(tag), props), inside);
}

function svgNode(tag, props, ...inside) {
  return nodeFill(nodeSet(document.createElementNS(SVG_SPACE, tag), props), inside);
}

// A button that does something, with a name for those who cannot see its sign.
function buttonNode(label, props, sign) {
  return node(
    "button",
    {type: "button", "aria-label": sign ? label : null, title: sign ? label : null, ...props},
    sign || label);
}

// What n has inside is these, and nothing else.
function nodePut(n, ...inside) {
  n.replaceChildren();
  return nodeFill(n, inside);
}

function byId(id) { return document.getElementById(id); }

function nodeShow(n, shown) { n.hidden = !shown; }

// ---- what views say of numbers ----

function numberText(x) {
  if (typeof x !== "number" || !isFinite(x)) return "not known";
  if (Number.isInteger(x)) return x.toLocaleString("en").replaceAll(",", "\u2009");
  const size = Math.abs(x);
  return x.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function bytesText(x) {
  if (typeof x !== "number" || !isFinite(x)) return "not known";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (x >= 1024 && i < units.length - 1) {
    x /= 1024;
    i++;
  }
  return (i === 0 ? String(x) : x.toFixed(1)) + " " + units[i];
}

function secondsText(x) {
  if (typeof x !== "number" || !isFinite(x)) return "not known";
  if (x < 60) return x.toFixed(1) + " s";
  if (x < 3600) return Math.floor(x / 60) + " min " + Math.floor(x % 60) + " s";
  return Math.floor(x / 3600) + " h " + Math.floor((x % 3600) / 60) + " min";
}
