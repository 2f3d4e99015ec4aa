// state_tab.js - what the server does now: rates, the batch, the queue, pages by tier, who is
// served.

const STATE_MS = 1000;

// A field that may not be there: "batch.decode_rows". Numbers only.
function fieldNumber(x, path) {
  for (const name of path.split(".")) x = typeof x === "object" && x !== null ? x[name] : undefined;
  return typeof x === "number" && isFinite(x) ? x : null;
}

// How fast a counter grew between two answers; null where that is not known. A server that began
// anew counts from 0.
function counterRate(before, now, path) {
  const a = before ? fieldNumber(before.state, path) : null;
  const b = fieldNumber(now.state, path);
  if (a === null || b === null || b < a || now.ms <= before.ms) return null;
  return ((b - a) * 1000) / (now.ms - before.ms);
}

// The mean of a counter for each step of the scheduler, or of a sum for each event.
function counterMean(before, now, path, per) {
  const a = counterRate(before, now, path), n = counterRate(before, now, per);
  return a !== null && n > 0 ? a / n : null;
}

// How long a share q of what was timed between two answers took at most, in ms: the counts of a
// histogram, straight within a bucket.
function histogramAt(before, now, name, q) {
  const list = (x, path) => path.split(".").reduce((y, part) => (y ? y[part] : null), x);
  const bounds = list(now.state, "times.bucket_s");
  const b = list(now.state, "times." + name + ".at");
  const a = before ? list(before.state, "times." + name + ".at") : null;
  if (![bounds, a, b].every(Array.isArray) || a.length !== b.length || b.length !== bounds.length)
    return null;
  const counts = b.map((x, i) => x - a[i]);
  const all = counts[counts.length - 1];
  if (!(all > 0)) return null;
  const i = counts.findIndex((n) => n >= q * all);
  const low = i > 0 ? bounds[i - 1] : 0, below = i > 0 ? counts[i - 1] : 0;
  if (i < 0 || typeof low !== "number") return null;
  // longer than the last bound that is one: at least that
  if (typeof bounds[i] !== "number" || bounds[i] > 1e6) return low * 1000;
  return 1000 * (low + ((bounds[i] - low) * (q * all - below)) / (counts[i] - below || 1));
}

// The plots: title, then for each line its name, its unit, and what it shows of the last two
// answers, or of a longer while.
// clang-format off
const STATE_PLOTS = [
  { title: "Tokens a second", lines: [
    { name: "written", value: (a, b) => counterRate(a, b, "counters.tokens_generated") },
    { name: "read", value: (a, b) => counterRate(a, b, "counters.tokens_prompt") },
    { name: "known", value: (a, b) => counterRate(a, b, "counters.tokens_cached") } ] },
  { title: "Rows of a batch", lines: [
    { name: "decode", value: (a, b) => counterMean(a, b, "counters.rows_decode", "counters.steps") },
    { name: "prompt", value: (a, b) => counterMean(a, b, "counters.rows_prompt", "counters.steps") } ] },
  { title: "Requests", lines: [
    { name: "running", value: (a, b) => fieldNumber(b.state, "requests.running") },
    { name: "waiting", value: (a, b) => fieldNumber(b.state, "requests.waiting") },
    { name: "preempted", value: (a, b) => fieldNumber(b.state, "requests.preempted") } ] },
  { title: "Pages in use", lines: [
    { name: "", unit: "%", value: (a, b) => pagesShare(b.state) } ] },
  { title: "Between tokens", lines: [
    { name: "p50", unit: "ms", value: (a, b, old) => histogramAt(old, b, "inter_token", 0.5) },
    { name: "p99", unit: "ms", value: (a, b, old) => histogramAt(old, b, "inter_token", 0.99) } ] },
  { title: "To the first token", lines: [
    { name: "p50", unit: "ms", value: (a, b, old) => histogramAt(old, b, "first_token", 0.5) },
    { name: "p99", unit: "ms", value: (a, b, old) => histogramAt(old, b, "first_token", 0.99) } ] },
];
// clang-format on
const STATE_WHILE =
  10; // answers: percentiles are of so many seconds, since one second has few requests

function tiersOf(state) {
  const list =
    Array.isArray(state.state) ? state.state : [{keys: "all", values: "all", ...state.pages}];
  return list.filter((t) => fieldNumber(t, "pages") > 0 && fieldNumber(t, "pages_free") !== null);
}

function pagesShare(state) {
  const tiers = tiersOf(state);
  const all = tiers.reduce((n, t) => n + t.pages, 0);
  return all ? (100 * tiers.reduce((n, t) => n + t.pages - t.pages_free, 0)) / all : null;
}

function barNode(share) {
  const n = Math.max(0, Math.min(1, share)) * 100;
  return svgNode(
    "svg", {class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true"},
    svgNode("rect", {class: "bar-all", width: 100, height: 8}),
    svgNode("rect", {class: "bar-part", width: n.toFixed(2), height: 8}));
}

function tierNode(t) {
  const used = t.pages - t.pages_free;
  const type = t.keys === t.values ? String(t.keys) : t.keys + "/" + t.values;
  const reach = t.keys === "all"    ? "tokens" :
    fieldNumber(t, "last") === null ? "all other tokens" :
                                      "the last " + numberText(t.last) + " tokens";
  return node(
    "div", {class: "tier"}, node("span", null, node("strong", null, type), " ", reach),
    barNode(used / t.pages),
    node(
      "span", {class: "hint"},
      numberText(used) + " of " + numberText(t.pages) + " pages of " + numberText(t.page_tokens) +
        " tokens" + (fieldNumber(t, "bytes_used") === null ? "" : ", " + bytesText(t.bytes_used))));
}

function prefixesNode(p) {
  if (typeof p !== "object" || p === null) return null;
  const words = [
    numberText(p.kept) + " of " + numberText(p.most) +
      " texts are kept for prompts that begin the same",
    bytesText(p.bytes), numberText(p.hits) + " of " + numberText(p.lookups) + " prompts found one",
    numberText(p.tokens_reused) + " of " + numberText(p.tokens) + " tokens were not read again"
  ];
  return node("p", {class: "hint"}, words.join(" · "));
}

function slotPrompt(s) {
  return numberText(Math.min(s.held_tokens, s.prompt_tokens)) + " / " + numberText(s.prompt_tokens);
}

// clang-format off
const SLOT_COLUMNS = [
  { name: "request", text: (s) => String(s.id) + (s.choice > 0 ? "." + s.choice : "") },
  { name: "model", text: (s) => String(s.model || "") },
  { name: "phase", text: (s) => String(s.phase || "") },
  { name: "key", text: (s) => String(s.key || "") },
  { name: "prompt read", number: true, text: slotPrompt },
  { name: "written", number: true, text: (s) => numberText(s.generated) },
  { name: "pages", number: true, text: (s) => numberText(s.pages) },
  { name: "age", number: true, text: (s) => secondsText(s.age_s) },
];
// clang-format on

function slotsDraw(slots) {
  const row = (tag, cell) => node(
    "tr", null, SLOT_COLUMNS.map((c) => node(tag, {class: c.number ? "to-right" : null}, cell(c))));
  const rows = slots.filter((s) => typeof s === "object" && s !== null)
                 .slice(0, 64)
                 .map((s) => row("td", (c) => c.text(s)));
  const none = node("tr", null, node("td", {colspan: SLOT_COLUMNS.length, class: "hint"}, "none"));
  nodePut(
    byId("slots"), node("thead", null, row("th", (c) => c.name)),
    node("tbody", null, rows.length ? rows : [none]));
}

function stateLine(state) {
  const words = [
    "Weft " + (state.version || ""), String(state.model || ""),
    "up " + secondsText(fieldNumber(state, "uptime_s"))
  ];
  const ended = state.requests && state.requests.ended ?
    Object.entries(state.requests.ended).filter(([, n]) => n > 0) :
    [];
  if (ended.length)
    words.push("ended: " + ended.map(([name, n]) => numberText(n) + " " + name).join(", "));
  if (fieldNumber(state, "requests.refused") > 0)
    words.push(numberText(state.requests.refused) + " refused");
  if (fieldNumber(state, "adapters.loaded") > 0)
    words.push(numberText(state.adapters.loaded) + " adapters loaded");
  const swap = fieldNumber(state, "swap.memory_bytes") + fieldNumber(state, "swap.disk_bytes");
  if (swap > 0) words.push(bytesText(swap) + " swapped out");
  if (state.draining === true) words.push("draining: it takes no new requests");
  return words.filter((x) => x.trim() !== "").join(" · ");
}

function stateTab() {
  const plots = STATE_PLOTS.map((p) => ({view: plotView(p.title, p.lines), lines: p.lines}));
  let seen = []; // the last answers, oldest first
  nodePut(byId("plots"), plots.map((p) => p.view.root));
  const poll = pollMake(
    STATE_MS,
    async () => {
      const state = await withKey(() => serverJson("/weft/state"));
      if (typeof state !== "object" || state === null)
        throw new Error("the state is not an object");
      const now = {state, ms: performance.now()};
      const before = seen.length ? seen[seen.length - 1] : null;
      for (const p of plots) p.view.push(p.lines.map((l) => l.value(before, now, seen[0] || null)));
      seen = [...seen, now].slice(-STATE_WHILE);
      byId("state-line").textContent = stateLine(state);
      nodePut(byId("tiers"), tiersOf(state).map(tierNode), prefixesNode(state.prefixes));
      slotsDraw(Array.isArray(state.slots) ? state.slots : []);
    },
    (e) => {
      seen = [];
      for (const p of plots) p.view.push(p.lines.map(() => null));
      byId("state-line").textContent = "No state: " + e.message + ".";
      return e.status !== 401 && e.status !== 404;
    });
  return poll;
}
