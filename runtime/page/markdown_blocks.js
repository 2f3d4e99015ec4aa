// markdown_blocks.js - lines of Markdown into blocks:
//   {type: "heading", level, text}, {type: "para", text}, {type: "code", lang, text, open}, {type:
//   "quote", blocks}, {type: "list", start, items: [{done, blocks}]}, {type: "table", align, rows:
//   [[text]]}, {type: "rule"}
// Every `text` but that of code is for inlineParse. `start` is null for bullets, `done` null where
// there is no box to tick.
//
// It reads what models write, not all of CommonMark: no HTML, no references, no code by
// indentation, no underlined headings. Lists may be indented by any two or more blanks, and code in
// a list need not be.

const DEPTH_MAX = 10; // of quotes and lists; deeper ones are paragraphs
const COLUMNS_MAX = 64;

// None of these goes back over what it took: a line may be a megabyte.
const FENCE = /^ {0,12}(`{3,}|~{3,})([^`]*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const QUOTE = /^ {0,3}>/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( {1,4})(?=[^ ])| *$|( ))/;
const TABLE_LINE = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;

function indentOf(line) {
  let n = 0;
  while (line[n] === " ") n++;
  return n;
}

function outdent(line, n) { return line.slice(Math.min(n, indentOf(line))); }

// Whether a line ends the paragraph before it.
function blockBegins(line, depth) {
  if (FENCE.test(line) || RULE.test(line) || HEADING.test(line)) return true;
  if (depth >= DEPTH_MAX) return false;
  if (QUOTE.test(line)) return true;
  const m = ITEM.exec(line);
  return m !== null && m[1].length <= 3 && m[0].length < line.length &&
    (!/\d/.test(m[2]) || m[2].length === 2);
}

function fenceCloses(line, mark) {
  const t = line.trim();
  return t.length >= mark.length && t === mark[0].repeat(t.length);
}

// Each reader takes the lines from `at` on and gives a block and the line behind it.

function codeRead(lines, at) {
  const [, mark, info] = FENCE.exec(lines[at]);
  const indent = indentOf(lines[at]);
  let end = at + 1;
  while (end < lines.length && !fenceCloses(lines[end], mark)) end++;
  const text = lines.slice(at + 1, end).map((l) => outdent(l, indent)).join("\n");
  const open = end === lines.length;
  return {
    block: {type: "code", lang: info.trim().split(/\s/, 1)[0].slice(0, 32), text, open},
    end: open ? end : end + 1
  };
}

function headingRead(lines, at) {
  const level = HEADING.exec(lines[at])[1].length;
  let text = lines[at].trim().slice(level).trim();
  let n = text.length;
  while (n > 0 && text[n - 1] === "#") n--;
  if (n === 0 || text[n - 1] === " ") text = text.slice(0, n).trim(); // "# Title #"
  return {block: {type: "heading", level, text}, end: at + 1};
}

function quoteRead(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end++;
  const inside = lines.slice(at, end).map((l) => l.trimStart().slice(1).replace(/^ /, ""));
  return {block: {type: "quote", blocks: blocksRead(inside, depth + 1)}, end};
}

// ---- lists ----

function listKind(mark) { return /\d/.test(mark) ? mark[mark.length - 1] : mark; }

// The lines of one item: what is indented, what follows directly, and all of a fence that it
// opened.
function itemEnd(lines, at, indent, depth) {
  let fence = null;
  let end = at + 1;
  const first = FENCE.exec(lines[at].replace(ITEM, ""));
  if (first) fence = first[1];
  for (; end < lines.length; end++) {
    const line = lines[end];
    if (fence) {
      if (fenceCloses(line, fence)) fence = null;
      continue;
    }
    if (line.trim() === "") {
      let next = end;
      while (next < lines.length && lines[next].trim() === "") next++;
      if (next === lines.length || indentOf(lines[next]) < indent + 2) return end;
      end = next - 1;
      continue;
    }
    const inside = indentOf(line) >= indent + 2;
    const lazy = lines[end - 1].trim() !== "" && !blockBegins(line, depth) && !ITEM.test(line);
    if (!inside && !lazy) return end;
    const m = inside ? FENCE.exec(line) : null;
    if (m) fence = m[1];
  }
  return end;
}

function itemRead(lines, at, end, depth) {
  const m = ITEM.exec(lines[at]);
  const next = lines.slice(at + 1, end).find((l) => l.trim() !== "" && indentOf(l) > m[1].length);
  const cut = next === undefined ? m[0].length : Math.min(m[0].length, indentOf(next));
  let head = lines[at].slice(m[0].length);
  const box = /^\[([ xX])\] /.exec(head);
  if (box) head = head.slice(4);
  const inside = [head, ...lines.slice(at + 1, end).map((l) => outdent(l, cut))];
  return {done: box ? box[1] !== " " : null, blocks: blocksRead(inside, depth + 1)};
}

function listRead(lines, at, depth) {
  const [, blanks, mark] = ITEM.exec(lines[at]);
  const items = [];
  let end = at;
  for (;;) {
    const stop = itemEnd(lines, end, blanks.length, depth);
    items.push(itemRead(lines, end, stop, depth));
    end = stop;
    let next = end;
    while (next < lines.length && lines[next].trim() === "") next++;
    const m = next < lines.length && !RULE.test(lines[next]) ? ITEM.exec(lines[next]) : null;
    if (!m || m[1].length > blanks.length + 1 || listKind(m[2]) !== listKind(mark)) break;
    end = next;
  }
  return {block: {type: "list", start: /\d/.test(mark) ? parseInt(mark, 10) : null, items}, end};
}

// ---- tables ----

function cellsOf(line) {
  const cells = [""];
  let text = line.trim();
  if (text.startsWith("|")) text = text.slice(1);
  if (text.endsWith("|") && !text.endsWith("\\|")) text = text.slice(0, -1);
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\" && text[i + 1] === "|")
      cells[cells.length - 1] += text[++i];
    else if (text[i] === "|")
      cells.push("");
    else
      cells[cells.length - 1] += text[i];
  }
  return cells.map((c) => c.trim());
}

function tableBegins(lines, at) {
  if (at + 1 >= lines.length || !lines[at].includes("|") || !TABLE_LINE.test(lines[at + 1].trim()))
    return false;
  const n = cellsOf(lines[at]).length;
  return n <= COLUMNS_MAX && n === cellsOf(lines[at + 1]).length;
}

function tableRead(lines, at) {
  const align =
    cellsOf(lines[at + 1])
      .map((c) => (c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : "left"));
  const rows = [cellsOf(lines[at])];
  let end = at + 2;
  for (; end < lines.length && lines[end].includes("|"); end++) {
    const cells = cellsOf(lines[end]).slice(0, align.length);
    while (cells.length < align.length) cells.push("");
    rows.push(cells);
  }
  return {block: {type: "table", align, rows}, end};
}

// ---- all of them ----

function paraRead(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !blockBegins(lines[end], depth) &&
         !tableBegins(lines, end))
    end++;
  const text = lines.slice(at, end).map((l) => l.trimStart()).join("\n").trimEnd();
  return {block: {type: "para", text}, end};
}

function blockRead(lines, at, depth) {
  const line = lines[at];
  if (FENCE.test(line)) return codeRead(lines, at);
  if (RULE.test(line)) return {block: {type: "rule"}, end: at + 1};
  if (HEADING.test(line)) return headingRead(lines, at);
  if (depth < DEPTH_MAX && QUOTE.test(line)) return quoteRead(lines, at, depth);
  if (depth < DEPTH_MAX && ITEM.test(line)) return listRead(lines, at, depth);
  if (tableBegins(lines, at)) return tableRead(lines, at);
  return paraRead(lines, at, depth);
}

function blocksRead(lines, depth) {
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at].trim() === "") {
      at++;
      continue;
    }
    const {block, end} = blockRead(lines, at, depth);
    block.source = depth === 0 ? lines.slice(at, end).join("\n") : "";
    blocks.push(block);
    at = end;
  }
  return blocks;
}

// `source` of each block is its text, so that a view knows which blocks of a growing answer it has
// already.
function markdownParse(text) {
  return blocksRead(text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ").split("\n"), 0);
}
