// markdown_inline.js - the text of a paragraph into a list of strings and marks:
//   {type: "em" | "strong" | "del", inside}, {type: "code", text}, {type: "link", url, title,
//   inside}, {type: "break"}
//
// CommonMark's rules for emphasis. What differs, to be safe and simple: HTML is text, an image is a
// link, a link has no links in it, only http and https are links at all, and a line break is one.
// Time is in proportion to the text (times the bounds below), also for texts that were made to be
// hard.

const OPEN_MAX = 48; // emphasis that waits for its end; the oldest becomes text
const RUN_MAX = 6;   // letters of a run; longer ones are text. The two bound the depth of the tree
const BRACKETS_MAX = 16;
const URL_MAX = 2048;

// The address to go to, or null: nothing but http and https, no passwords in it.
function urlSafe(text) {
  if (text.length > URL_MAX || !/^https?:\/\//i.test(text)) return null;
  try {
    const url = new URL(text);
    const web = url.protocol === "http:" || url.protocol === "https:";
    return web && url.hostname !== "" && url.username === "" && url.password === "" ? url.href :
                                                                                      null;
  } catch {
    return null;
  }
}

// ---- emphasis ----

function isBlank(c) { return c === "" || /\s/.test(c); }

function isPunct(c) { return c !== "" && /[\p{P}\p{S}]/u.test(c); }

// A run of *, _ or ~, and whether it can open and close: it leans on a word to its right, to its
// left.
function runAt(text, at, n) {
  const mark = text[at];
  if (n > RUN_MAX) return {mark, n, opens: false, closes: false};
  const before = at > 0 ? text[at - 1] : "";
  const after = at + n < text.length ? text[at + n] : "";
  const right = !isBlank(after) && (!isPunct(after) || isBlank(before) || isPunct(before));
  const left = !isBlank(before) && (!isPunct(before) || isBlank(after) || isPunct(after));
  if (mark === "_")
    return {
      mark,
      n,
      opens: right && (!left || isPunct(before)),
      closes: left && (!right || isPunct(after))
    };
  if (mark === "~") return {mark, n, opens: right && n === 2, closes: left && n === 2};
  return {mark, n, opens: right, closes: left};
}

function runsMatch(open, close) {
  if (open.mark !== close.mark) return false;
  if (open.mark === "~") return true;
  // "a*b**c*": a run that could be both takes no partner with which it adds up to three
  const both = (open.opens && open.closes) || (close.opens && close.closes);
  return !both || (open.first + close.first) % 3 !== 0 ||
    (open.first % 3 === 0 && close.first % 3 === 0);
}

// Runs that found no partner become text, and neighbouring strings one.
function inlineTidy(items) {
  const out = [];
  for (const x of items) {
    const y = x.mark ? x.mark.repeat(x.n) : x;
    if (typeof y === "string" && typeof out[out.length - 1] === "string")
      out[out.length - 1] += y;
    else if (y !== "")
      out.push(y);
  }
  return out;
}

function inlineEmphasise(items) {
  const out = [];
  const open = []; // runs in `out` that wait, each with its place `at`

  function close(run) {
    while (run.n > 0) {
      let i = open.length - 1;
      while (i >= 0 && !runsMatch(open[i], run)) i--;
      if (i < 0) return;
      const from = open[i];
      const n = run.mark === "~" || (from.n >= 2 && run.n >= 2) ? 2 : 1;
      const inside = inlineTidy(out.splice(from.at + 1));
      out.push({type: run.mark === "~" ? "del" : n === 2 ? "strong" : "em", inside});
      from.n -= n;
      run.n -= n;
      open.length = from.n > 0 ? i + 1 : i;
    }
  }

  for (const x of items) {
    if (!x.mark) {
      out.push(x);
      continue;
    }
    const run = {...x, first: x.n, at: 0};
    if (run.closes) close(run);
    if (run.n === 0) continue;
    run.at = out.length;
    out.push(run);
    if (run.opens) {
      open.push(run);
      if (open.length > OPEN_MAX) open.shift();
    }
  }
  return inlineTidy(out);
}

// ---- the pieces ----

function linksDrop(items) {
  const out = [];
  for (const x of items) {
    if (x.type === "link")
      for (const y of linksDrop(x.inside)) out.push(y);
    else
      out.push(x.inside ? {...x, inside: linksDrop(x.inside)} : x);
  }
  return inlineTidy(out);
}

// Where runs of backticks are, by their length: what closes a code span is a run as long as the one
// that opens it.
function ticksFind(text) {
  const runs = new Map();
  for (const m of text.matchAll(/`+/g)) {
    if (!runs.has(m[0].length)) runs.set(m[0].length, {at: [], next: 0});
    runs.get(m[0].length).at.push(m.index);
  }
  return runs;
}

function ticksNext(runs, n, from) {
  const run = runs.get(n);
  if (!run) return -1; // the rest of a run whose first tick was escaped
  while (run.next < run.at.length && run.at[run.next] < from) run.next++;
  return run.next < run.at.length ? run.at[run.next] : -1;
}

function codeText(raw) {
  const text = raw.replaceAll("\n", " ");
  return text.length > 2 && text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "" ?
    text.slice(1, -1) :
    text;
}

// A bare address ends before what is punctuation of the sentence around it.
function urlEnd(url) {
  let extra = url.split(")").length - url.split("(").length; // parentheses that close nothing in it
  let n = url.length;
  for (; n > 0; n--) {
    const last = url[n - 1];
    if (last === ")" && extra > 0)
      extra--;
    else if (!".,;:!?'*_~".includes(last))
      break;
  }
  return url.slice(0, n);
}

const ENTITIES = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: "\"",
  "#39": "'",
  nbsp: "\u00a0"
};

// Each form looks at the text where the scanner is, and says what it made of it and how long that
// was; null: nothing.
const INLINE_FORMS = {
  "\\"(text, at) {
    const next = text[at + 1] || "";
    if (next === "\n") return {item: {type: "break"}, n: 2};
    return /[!-/:-@[-`{-~]/.test(next) ? {item: next, n: 2} : null;
  },
  "\n"() { return {item: {type: "break"}, n: 1}; },
  "<"(text, at) {
    const form = /<(?:(https?:\/\/[^\s<>]{1,2048})|br\s{0,9}\/?)>/iy;
    form.lastIndex = at;
    const m = form.exec(text);
    if (!m) return null;
    if (!m[1]) return {item: {type: "break"}, n: m[0].length};
    const url = urlSafe(m[1]);
    return url ? {item: {type: "link", url, title: "", inside: [m[1]]}, n: m[0].length} : null;
  },
  "&"(text, at) {
    const form = /&(amp|lt|gt|quot|#39|nbsp);/y;
    form.lastIndex = at;
    const m = form.exec(text);
    return m ? {item: ENTITIES[m[1]], n: m[0].length} : null;
  },
  h(text, at) {
    if (at > 0 && /[\p{L}\p{N}_]/u.test(text[at - 1])) return null;
    const form = /https?:\/\/[^\s<>"`|\]]{1,2048}/iy;
    form.lastIndex = at;
    const m = form.exec(text);
    if (!m) return null;
    const written = urlEnd(m[0]);
    const url = urlSafe(written);
    return url ? {item: {type: "link", url, title: "", inside: [written]}, n: written.length} :
                 null;
  },
};

// "(address "title")" behind a closing bracket.
function linkTarget(text, at) {
  const form =
    /\(\s{0,9}(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s{1,9}(?:"([^"]*)"|'([^']*)'))?\s{0,9}\)/y;
  form.lastIndex = at;
  const m = form.exec(text);
  if (!m) return null;
  return {url: urlSafe(m[1] || m[2] || ""), title: m[3] || m[4] || "", n: m[0].length};
}

function inlineParse(text) {
  const ticks = ticksFind(text);
  const frames = [{open: "", items: []}]; // the paragraph, then one for each bracket that is open
  const top = () => frames[frames.length - 1];
  const special = /[\\`*_~[\]!<&\n]|https?:\/\//gi;
  let at = 0;

  // A bracket that was not a link: what it held is the text around it.
  function frameDrop(end) {
    const f = frames.pop();
    const into = top().items;
    into.push(f.open);
    for (const x of f.items) into.push(x);
    if (end) into.push(end);
  }

  function bracketEnd() {
    if (frames.length === 1) {
      top().items.push("]");
      return 1;
    }
    const target = linkTarget(text, at + 1);
    if (!target || !target.url) {
      const n = target ? target.n : 0; // an address that is not allowed stays as it was written
      frameDrop(text.slice(at, at + 1 + n));
      return 1 + n;
    }
    const f = frames.pop();
    const inside = linksDrop(inlineEmphasise(f.items));
    top().items.push({
      type: "link",
      url: target.url,
      title: target.title,
      inside: inside.length ? inside : [target.url]
    });
    return 1 + target.n;
  }

  function ticksTake() {
    let n = 1;
    while (text[at + n] === "`") n++;
    const end = ticksNext(ticks, n, at + n);
    top().items.push(
      end < 0 ? "`".repeat(n) : {type: "code", text: codeText(text.slice(at + n, end))});
    return end < 0 ? n : end + n - at;
  }

  function step(c) {
    if (c === "`") return ticksTake();
    if (c === "*" || c === "_" || c === "~") {
      let n = 1;
      while (text[at + n] === c) n++;
      top().items.push(runAt(text, at, n));
      return n;
    }
    if ((c === "[" || (c === "!" && text[at + 1] === "[")) && frames.length <= BRACKETS_MAX) {
      const open = c === "!" ? "![" : "[";
      frames.push({open, items: []});
      return open.length;
    }
    if (c === "]") return bracketEnd();
    const form = INLINE_FORMS[c.toLowerCase()];
    const got = form ? form(text, at) : null;
    top().items.push(got ? got.item : c);
    return got ? got.n : 1;
  }

  while (at < text.length) {
    special.lastIndex = at;
    const m = special.exec(text);
    const end = m ? m.index : text.length;
    if (end > at)
      top().items.push(text[end] === "\n" ? text.slice(at, end).trimEnd() : text.slice(at, end));
    at = end;
    if (m) at += step(text[at]);
  }
  while (frames.length > 1) frameDrop("");
  return inlineEmphasise(top().items);
}
