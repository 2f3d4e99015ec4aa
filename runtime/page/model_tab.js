// model_tab.js - the model: its file, each line with the time that it takes, beside the picture of
// its graph.

const PROFILE_MS = 2000;
const SOURCE_LINES_MAX = 5000;

const modelTab = {
  about: null,
  file: 0,
  rows: [],
  profile: null
};

// The part of a call that each line of a file takes: Map of line -> {share, note}. part: "decode"
// or "prefill".
function profileShares(profile, file, part) {
  const out = new Map();
  const whole = profile ? fieldNumber(profile, part + ".timed_seconds") : null;
  const tokens = profile ? fieldNumber(profile, part + ".tokens") : null;
  if (!(whole > 0) || !Array.isArray(profile.lines)) return out;
  for (const l of profile.lines) {
    const seconds = fieldNumber(l, part + ".seconds");
    if (!(seconds > 0) || l.file !== file) continue;
    const notes = [part + ": " + ((100 * seconds) / whole).toFixed(1) + " %"];
    if (tokens > 0) notes.push(((seconds * 1000) / tokens).toFixed(4) + " ms a token");
    const rate = fieldNumber(l, part + ".gb_per_s"), flops = fieldNumber(l, part + ".gflop_per_s");
    const roof = fieldNumber(l, part + ".roof_share");
    if (rate !== null) notes.push(numberText(rate) + " GB/s");
    if (flops !== null) notes.push(numberText(flops) + " GFLOP/s");
    if (roof !== null) notes.push((100 * roof).toFixed(0) + " % of the roof");
    out.set(l.line, {share: seconds / whole, note: notes.join(", ")});
  }
  return out;
}

function profileLine(p) {
  const words = ["decode", "prefill"].map((part) => {
    const tokens = fieldNumber(p, part + ".tokens"),
          seconds = fieldNumber(p, part + ".timed_seconds");
    return tokens > 0 ? part + " " + ((seconds * 1000) / tokens).toFixed(3) + " ms a token" : "";
  });
  const calls = fieldNumber(p, "calls");
  if (calls === 0) return "No call was timed yet: the profile comes with the first answers.";
  if (calls !== null)
    words.push(
      numberText(calls) + " calls timed" + (p.every > 1 ? ", one in " + numberText(p.every) : ""));
  return words.filter((x) => x).join(" · ");
}

function shareCell(cell, got) {
  const text = got ? (100 * got.share).toFixed(got.share < 0.0995 ? 1 : 0) + "%" : "";
  nodePut(cell, got ? [barNode(got.share), node("span", null, text)] : null);
  cell.title = got ? got.note : "";
}

function sourceDraw() {
  const file = modelTab.about.files[modelTab.file];
  const lines = file.text.split("\n").slice(0, SOURCE_LINES_MAX);
  if (lines[lines.length - 1] === "") lines.pop();
  modelTab.rows = lines.map((text, i) => {
    const decode = node("td", {class: "share"}), prefill = node("td", {class: "share"});
    return {
      decode,
      prefill,
      root: node(
        "tr", null, decode, prefill, node("td", {class: "line-no"}, i + 1),
        node("td", {class: "line-text"}, node("code", null, colourNodes(text, "weft"))))
    };
  });
  nodePut(
    byId("source"),
    node(
      "table", {class: "source"},
      node(
        "thead", null,
        node(
          "tr", null, node("th", null, "decode"), node("th", null, "prefill"), node("th", null, ""),
          node("th", null, ""))),
      node("tbody", null, modelTab.rows.map((r) => r.root))));
  profileDraw();
}

function profileDraw() {
  const file = modelTab.about.files[modelTab.file].name;
  for (const part of ["decode", "prefill"]) {
    const shares = profileShares(modelTab.profile, file, part);
    modelTab.rows.forEach((row, i) => shareCell(row[part], shares.get(i + 1)));
  }
}

// clang-format off
const FACTS = [
  ["Model", (m) => m.id], ["Family", (m) => m.title || m.family], ["Format", (m) => m.format],
  ["Parameters", (m) => (typeof m.parameters === "number" ? numberText(m.parameters) : "")],
  ["Weights", (m) => (typeof m.bytes === "number" ? bytesText(m.bytes) : "")],
  ["Context", (m) => (typeof m.context === "number" ? numberText(m.context) + " tokens" : "")],
  ["Device", (m) => [m.device, m.threads > 0 ? m.threads + (m.threads > 1 ? " threads" : " thread") : ""].filter((x) => x).join(", ")], ["Plan", (m) => m.plan],
];
// clang-format on

function factsDraw(m) {
  const rows = FACTS.map(([name, value]) => [name, value(m)])
                 .filter(([, value]) => typeof value === "string" && value !== "");
  const params =
    typeof m.params === "object" && m.params !== null ? Object.entries(m.params).slice(0, 200) : [];
  for (const [name, value] of params)
    rows.push([
      name,
      value === null              ? "none" :
        typeof value === "object" ? JSON.stringify(value) :
                                    String(value)
    ]);
  nodePut(
    byId("facts"),
    rows.map(
      ([name, value]) => node("div", null, node("dt", null, name), node("dd", null, value))));
}

async function modelLoad() {
  const about = await withKey(() => serverJson("/weft/model"));
  const files = Array.isArray(about.files) ?
    about.files.filter((f) => f && typeof f.name === "string" && typeof f.text === "string") :
    [];
  modelTab.about = {...about, files};
  modelTab.file = 0;
  factsDraw(modelTab.about);
  nodePut(byId("model-file"), files.map((f, i) => node("option", {value: i}, f.name)));
  if (files.length)
    sourceDraw();
  else
    nodePut(
      byId("source"), node("p", {class: "hint"}, "The server has no text of the model file."));
}

// As an image nothing in it can run. Through a blob, since the route may need a key.
async function graphLoad() {
  const url =
    URL.createObjectURL(await withKey(() => serverBlob("/weft/graph.svg", "image/svg+xml")));
  const image = node("img", {
    src: url,
    alt: "The graph of the model",
    onload: () => URL.revokeObjectURL(url),
    onerror: () => nodePut(byId("graph"), node("p", {class: "hint"}, "The graph cannot be drawn."))
  });
  nodePut(byId("graph"), image);
}

// The server has one model: it is asked for it once, and again only where that failed.
async function modelOpen(poll) {
  const fault = (what, e) => (byId("model-line").textContent = what + ": " + e.message + ".");
  byId("model-line").textContent = "";
  if (!modelTab.about) {
    try {
      await modelLoad();
    } catch (e) {
      fault("No model", e);
      return;
    }
  }
  if (modelTab.about.files.length) poll.start();
  if (byId("graph").querySelector("img")) return;
  try {
    await graphLoad();
  } catch (e) {
    fault("No graph", e);
  }
}

function modelTabSetUp() {
  const poll = pollMake(
    PROFILE_MS,
    async () => {
      const profile = await serverJson("/weft/profile");
      if (typeof profile !== "object" || profile === null)
        throw new Error("the profile is not an object");
      modelTab.profile = profile;
      profileDraw();
      byId("profile-line").textContent = profileLine(profile);
    },
    (e) => {
      byId("profile-line").textContent = "No profile: " + e.message + ".";
      return e.status !== 401 && e.status !== 404;
    });
  let open = false;
  byId("model-file").addEventListener("change", (e) => {
    modelTab.file = Number(e.target.value);
    sourceDraw();
  });
  byId("graph-size").addEventListener("click", (e) => {
    const full = byId("graph").classList.toggle("full");
    e.target.setAttribute("aria-pressed", String(full));
  });
  return {
    start() {
      open = true;
      modelOpen({start: () => open && poll.start()});
    },
    stop() {
      open = false;
      poll.stop();
    },
  };
}
