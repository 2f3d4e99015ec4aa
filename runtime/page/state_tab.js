// state_tab.js - what the server does now: rates, the batch, the queue, pages by tier, who is served.

const STATE_MS = 1000;

// A field that may not be there: "batch.decode_rows". Numbers only.
function fieldNumber(x, path) {
  for (const name of path.split(".")) x = typeof x === "object" && x !== null ? x[name] : undefined;
  return typeof x === "number" && isFinite(x) ? x : null;
}

// How fast a counter grew between two answers; null where that is not known. A server that began anew counts from 0.
function counterRate(before, now, path) {
  const a = before ? fieldNumber(before.state, path) : null;
  const b = fieldNumber(now.state, path);
  if (a === null || b === null || b < a || now.ms <= before.ms) return null;
  return ((b - a) * 1000) / (now.ms - before.ms);
}

// The plots: title, then for each line its name, its unit, and what it shows of the last two answers.
const STATE_PLOTS = [
  { title: "Tokens a second", lines: [
    { name: "written", value: (a, b) => counterRate(a, b, "tokens.generated") },
    { name: "read", value: (a, b) => counterRate(a, b, "tokens.prompt") },
    { name: "known", value: (a, b) => counterRate(a, b, "tokens.cached") } ] },
  { title: "Rows of the batch", lines: [
    { name: "decode", value: (a, b) => fieldNumber(b.state, "batch.decode_rows") },
    { name: "prompt", value: (a, b) => fieldNumber(b.state, "batch.prompt_rows") } ] },
  { title: "Requests", lines: [
    { name: "running", value: (a, b) => fieldNumber(b.state, "requests.running") },
    { name: "waiting", value: (a, b) => fieldNumber(b.state, "requests.waiting") },
    { name: "swapped", value: (a, b) => fieldNumber(b.state, "requests.swapped") } ] },
  { title: "Pages in use", lines: [
    { name: "", unit: "%", value: (a, b) => pagesShare(b.state) } ] },
  { title: "Between tokens", lines: [
    { name: "p50", unit: "ms", value: (a, b) => fieldNumber(b.state, "time_ms.inter_token.p50") },
    { name: "p99", unit: "ms", value: (a, b) => fieldNumber(b.state, "time_ms.inter_token.p99") } ] },
  { title: "To the first token", lines: [
    { name: "p50", unit: "ms", value: (a, b) => fieldNumber(b.state, "time_ms.first_token.p50") },
    { name: "p99", unit: "ms", value: (a, b) => fieldNumber(b.state, "time_ms.first_token.p99") } ] },
];

function tiersOf(state) {
  return Array.isArray(state.state) ? state.state.filter((t) => fieldNumber(t, "pages") > 0 && fieldNumber(t, "pages_free") !== null) : [];
}

function pagesShare(state) {
  const tiers = tiersOf(state);
  const all = tiers.reduce((n, t) => n + t.pages, 0);
  return all ? (100 * tiers.reduce((n, t) => n + t.pages - t.pages_free, 0)) / all : null;
}

function barNode(share) {
  const n = Math.max(0, Math.min(1, share)) * 100;
  return svgNode("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
                 svgNode("rect", { class: "bar-all", width: 100, height: 8 }), svgNode("rect", { class: "bar-part", width: n.toFixed(2), height: 8 }));
}

function tierNode(t) {
  const used = t.pages - t.pages_free;
  const type = t.keys === t.values ? String(t.keys) : t.keys + "/" + t.values;
  const reach = fieldNumber(t, "last") === null ? "all other tokens" : "the last " + numberText(t.last) + " tokens";
  return node("div", { class: "tier" }, node("span", null, node("strong", null, type), " ", reach), barNode(used / t.pages),
    node("span", { class: "hint" }, numberText(used) + " of " + numberText(t.pages) + " pages of " + numberText(t.page_tokens) + " tokens, " + bytesText(t.bytes_used)));
}

function prefixesNode(p) {
  if (typeof p !== "object" || p === null) return null;
  const words = [numberText(p.kept) + " of " + numberText(p.most) + " texts are kept for prompts that begin the same",
    bytesText(p.bytes), numberText(p.hits) + " of " + numberText(p.lookups) + " prompts found one",
    numberText(p.tokens_reused) + " of " + numberText(p.tokens) + " tokens were not read again"];
  return node("p", { class: "hint" }, words.join(" · "));
}

const SLOT_COLUMNS = [
  { name: "id", text: (s) => String(s.id) },
  { name: "model", text: (s) => String(s.model) },
  { name: "phase", text: (s) => String(s.phase) },
  { name: "key", text: (s) => (s.key === undefined || s.key === null ? "" : String(s.key)) },
  { name: "prompt", number: true, text: (s) => numberText(s.prompt_done) + " / " + numberText(s.prompt_tokens) },
  { name: "known", number: true, text: (s) => numberText(s.cached_tokens) },
  { name: "written", number: true, text: (s) => numberText(s.generated) + " / " + numberText(s.max_tokens) },
  { name: "age", number: true, text: (s) => secondsText(s.age_s) },
];

function slotsDraw(slots) {
  const row = (tag, cell) => node("tr", null, SLOT_COLUMNS.map((c) => node(tag, { class: c.number ? "to-right" : null }, cell(c))));
  const rows = slots.filter((s) => typeof s === "object" && s !== null).slice(0, 64).map((s) => row("td", (c) => c.text(s)));
  const none = node("tr", null, node("td", { colspan: SLOT_COLUMNS.length, class: "hint" }, "none"));
  nodePut(byId("slots"), node("thead", null, row("th", (c) => c.name)), node("tbody", null, rows.length ? rows : [none]));
}

function stateLine(state) {
  const words = ["Weft " + (state.version || ""), String(state.model || ""), "up " + secondsText(fieldNumber(state, "uptime_s"))];
  const r = state.requests || {};
  if (typeof r.done === "number") words.push(numberText(r.done) + " done");
  for (const name of ["cancelled", "refused", "preempted"]) if (r[name] > 0) words.push(numberText(r[name]) + " " + name);
  if (state.draining === true) words.push("draining: it takes no new requests");
  return words.filter((x) => x.trim() !== "").join(" · ");
}

function stateTab() {
  const plots = STATE_PLOTS.map((p) => ({ view: plotView(p.title, p.lines), lines: p.lines }));
  let before = null;
  nodePut(byId("plots"), plots.map((p) => p.view.root));
  const poll = pollMake(STATE_MS, async () => {
    const state = await withKey(() => serverJson("/weft/state"));
    if (typeof state !== "object" || state === null) throw new Error("the state is not an object");
    const now = { state, ms: performance.now() };
    for (const p of plots) p.view.push(p.lines.map((l) => l.value(before, now)));
    before = now;
    byId("state-line").textContent = stateLine(state);
    nodePut(byId("tiers"), tiersOf(state).map(tierNode), prefixesNode(state.prefixes));
    slotsDraw(Array.isArray(state.slots) ? state.slots : []);
  }, (e) => {
    before = null;
    for (const p of plots) p.view.push(p.lines.map(() => null));
    byId("state-line").textContent = "No state: " + e.message + ".";
    return e.status !== 401 && e.status !== 404;
  });
  return poll;
}
