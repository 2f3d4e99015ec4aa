// unit_markdown.js - Markdown into blocks and marks, and into elements of a document that only
// remembers.

// ---- marks, written short: "em(a)", "code:x", "link<url>(a)", "br" ----

function marksText(items) {
  return items
    .map((x) => {
      if (typeof x === "string") return x;
      if (x.type === "break") return "{br}";
      if (x.type === "code") return "{code:" + x.text + "}";
      if (x.type === "link") return "{link<" + x.url + ">" + marksText(x.inside) + "}";
      return "{" + x.type + ":" + marksText(x.inside) + "}";
    })
    .join("");
}

const MARKS = [
  ["plain", "plain"],
  ["*a* **b** ***c***", "{em:a} {strong:b} {em:{strong:c}}"],
  ["**a *b* c**", "{strong:a {em:b} c}"],
  ["*a **b***", "{em:a {strong:b}}"],
  ["2 * 3 * 4", "2 * 3 * 4"],
  ["snake_case_name and __init__", "snake_case_name and {strong:init}"],
  ["_a_ __b__", "{em:a} {strong:b}"],
  ["a*b*c", "a{em:b}c"],
  ["**open", "**open"],
  ["*a **b*", "*a *{em:b}"],
  ["~~gone~~ ~not~", "{del:gone} ~not~"],
  ["`a*b*` ``x ` y``", "{code:a*b*} {code:x ` y}"],
  ["`` ` `` and ` open", "{code:`} and ` open"],
  ["a\nb  \nc\\\nd", "a{br}b{br}c{br}d"],
  ["\\*a\\* \\q", "*a* \\q"],
  ["&lt;b&gt; &amp; &nope; &", "<b> & &nope; &"],
  ["<b>bold</b> <script>alert(1)</script>", "<b>bold</b> <script>alert(1)</script>"],
  ["a<br>b<br/>c", "a{br}b{br}c"],
  ["[a](https://x.org/)", "{link<https://x.org/>a}"],
  [
    "[a](https://x.org/ \"t\") [b](<http://y.org/a b>)",
    "{link<https://x.org/>a} {link<http://y.org/a%20b>b}"
  ],
  ["[a](https://x.org/p(q)r)", "{link<https://x.org/p(q)r>a}"],
  ["[**a** `b`](https://x.org/)", "{link<https://x.org/>{strong:a} {code:b}}"],
  ["[a](javascript:alert(1))", "[a](javascript:alert(1))"],
  [
    "[a](JaVaScRiPt:alert(1)) [a](data:text/html,x) [a](//x.org) [a](/v1/models)",
    "[a](JaVaScRiPt:alert(1)) [a](data:text/html,x) [a](//x.org) [a](/v1/models)"
  ],
  [
    "[a](\u0001javascript:x) [a](vbscript:x) [a](file:///etc/passwd)",
    "[a](\u0001javascript:x) [a](vbscript:x) [a](file:///etc/passwd)"
  ],
  ["[a](https://user:pass@x.org/)", "[a](https://user:pass@x.org/)"],
  ["![alt](https://x.org/i.png)", "{link<https://x.org/i.png>alt}"],
  ["![alt](data:image/png;base64,xx)", "![alt](data:image/png;base64,xx)"],
  ["[a [b](https://x.org/) c](https://y.org/)", "{link<https://y.org/>a b c}"],
  ["[see https://x.org/a](https://y.org/)", "{link<https://y.org/>see https://x.org/a}"],
  ["[a] [b] (c)", "[a] [b] (c)"],
  ["[*a](https://x.org/)*", "{link<https://x.org/>*a}*"],
  ["see https://x.org/a_b_c.", "see {link<https://x.org/a_b_c>https://x.org/a_b_c}."],
  [
    "(https://x.org/a(b)) and <https://y.org>",
    "({link<https://x.org/a(b)>https://x.org/a(b)}) and {link<https://y.org/>https://y.org}"
  ],
  ["xhttps://x.org https:// http://[", "xhttps://x.org https:// http://["],
  ["**https://x.org**", "{strong:{link<https://x.org/>https://x.org}}"],
  ["", ""],
];

for (const [text, expected] of MARKS)
  test("marks of " + JSON.stringify(text), () => same(marksText(inlineParse(text)), expected));

// ---- blocks ----

function blocksText(blocks) {
  return blocks
    .map((b) => {
      if (b.type === "heading") return "h" + b.level + "(" + b.text + ")";
      if (b.type === "para") return "p(" + b.text.replaceAll("\n", "/") + ")";
      if (b.type === "code")
        return "code" + (b.open ? "-open" : "") + ":" + b.lang + "(" +
          b.text.replaceAll("\n", "/") + ")";
      if (b.type === "quote") return "quote(" + blocksText(b.blocks) + ")";
      if (b.type === "table")
        return "table:" + b.align.map((a) => a[0]).join("") + "(" +
          b.rows.map((r) => r.join("|")).join("/") + ")";
      if (b.type === "rule") return "rule";
      const items = b.items.map(
        (i) => (i.done === null ? "" :
                  i.done        ? "[x]" :
                                  "[ ]") +
          blocksText(i.blocks));
      return (b.start === null ? "ul" : "ol" + b.start) + "(" + items.join("; ") + ")";
    })
    .join(" ");
}

const BLOCKS = [
  ["one\ntwo\n\nthree", "p(one/two) p(three)"],
  ["# A\n## B ##\n####### C\n#D", "h1(A) h2(B) p(####### C/#D)"],
  ["text\n# A\nmore", "p(text) h1(A) p(more)"],
  ["```c\nint x;\n\n  y\n```\nafter", "code:c(int x;//  y) p(after)"],
  ["```python\nprint(1)", "code-open:python(print(1))"],
  ["````\n```\n````", "code:(```)"],
  ["~~~\na\n~~~", "code:(a)"],
  ["``` `no` ```", "p(``` `no` ```)"],
  ["- a\n- b\n  - c\n    - d\n- e", "ul(p(a); p(b) ul(p(c) ul(p(d))); p(e))"],
  ["1. a\n2. b\n   more\n\n   para\n3. c", "ol1(p(a); p(b/more) p(para); p(c))"],
  ["1. a\n  - b\n  - c\n2. d", "ol1(p(a) ul(p(b); p(c)); p(d))"],
  ["3) a\n4) b", "ol3(p(a); p(b))"],
  ["- a\n\n- b\n\ntext", "ul(p(a); p(b)) p(text)"],
  ["* a\n- b", "ul(p(a)) ul(p(b))"],
  ["- [ ] a\n- [x] b\n- [link](x)", "ul([ ]p(a); [x]p(b); p([link](x)))"],
  ["1. a\n```\ncode\n```\n2. b", "ol1(p(a)) code:(code) ol2(p(b))"],
  ["1. a\n   ```\n   code\nunindented\n   ```\n2. b", "ol1(p(a) code:(code/unindented); p(b))"],
  ["text\n- a\nlazy", "p(text) ul(p(a/lazy))"],
  ["in the year\n1986. A", "p(in the year/1986. A)"],
  ["> a\n> b\n>\n> > c\n\nd", "quote(p(a/b) quote(p(c))) p(d)"],
  ["> - a\n> - b", "quote(ul(p(a); p(b)))"],
  ["---\n***\n_ _ _\n- - -", "rule rule rule rule"],
  ["|a|b|\n|--|:-:|\n|1|2|\n|3|\n|4|5|6|\n\nx", "table:lc(a|b/1|2/3|/4|5) p(x)"],
  ["a | b\n--|--:\n1 \\| 2 | 3", "table:lr(a|b/1 | 2|3)"],
  ["a | b\nc | d", "p(a | b/c | d)"],
  ["text\n|a|\n|-|\n|1|", "p(text) table:l(a/1)"],
  ["<div onclick=\"x\">\n<script>x</script>", "p(<div onclick=\"x\">/<script>x</script>)"],
  ["a\r\nb\rc\td", "p(a/b/c    d)"],
  ["", ""],
  ["\n\n \n", ""],
  ["-", "ul()"],
];

for (const [text, expected] of BLOCKS)
  test("blocks of " + JSON.stringify(text), () => same(blocksText(markdownParse(text)), expected));

test("the sources of blocks are the text, whatever its end", () => {
  const text = "# A\n\npara\nmore\n\n- a\n- b\n\n```\nx\n```\n| a |\n|-|\n| 1 |\n\n> q";
  for (let n = 0; n <= text.length; n++) {
    const sources = markdownParse(text.slice(0, n)).map((b) => b.source);
    same(sources.join("\n").trimEnd(), text.slice(0, n).replace(/\n+/g, "\n").trimEnd());
  }
});

// ---- time: texts made to be hard take time in proportion to their length ----

const HARD = [
  "*",
  "**",
  "_a",
  "*a **b ",
  "*a_ ",
  "[",
  "]",
  "[a](",
  "[a](b",
  "![",
  "![[]()",
  "`",
  "`a``b```c",
  "<",
  "<https://",
  "https://a.b/)",
  "https://x.org/" +
    ")".repeat(2000) + " ",
  "&",
  "&amp",
  "\\",
  "~~a ",
  "a\n",
  "> ",
  "- ",
  "1. ",
  "- a\n",
  " - a\n",
  "|",
  "|a",
  "|-",
  "a|b\n-|-\n",
  "#",
  "# ",
  "```\n",
  "~~~ ",
  " ",
  "\n",
  "- - ",
  "* * * a\n",
  "a |\n",
  "\t",
  "[a](https://x.org/ \"",
  "*[a*](https://x.org/)",
  "(",
  "- ```\n",
  "> - ",
  "   ",
];
const HARD_LETTERS = 60000;
const HARD_MS_MAX = 2000; // the slowest takes a tenth of it; what is quadratic takes minutes

for (const piece of HARD)
  for (const ends of [["", ""], ["# ", "#"], ["```", "`"], ["|a|\n", "x"]])
    test("time for " + JSON.stringify([ends[0], piece.slice(0, 20), ends[1]]), () => {
      const text = ends[0] + piece.repeat(Math.ceil(HARD_LETTERS / piece.length)) + ends[1];
      const begun = Date.now();
      same(elementsOf(text).length > 0 || text.trim() === "" || /^[-\s>.1]*$/.test(text), true);
      const ms = Date.now() - begun;
      if (ms > HARD_MS_MAX) throw new Error("took " + ms + " ms");
    });

// ---- elements ----

// As much of a document as nodes.js uses.
function pretendDocument() {
  const made = [];
  function element(tag) {
    const n = {
      tag,
      attributes: {},
      inside: [],
      setAttribute: (name, value) => (n.attributes[name] = value),
      addEventListener() {},
      append: (...list) => n.inside.push(...list),
    };
    made.push(n);
    return n;
  }
  return {made, createElement: element, createElementNS: (_, tag) => element(tag)};
}

// All elements that a text becomes.
function elementsOf(text) {
  const before = document;
  const pretend = pretendDocument();
  document = pretend;
  try {
    blockNodes(markdownParse(text));
  } finally {
    document = before;
  }
  return pretend.made;
}

const TAGS =
  "a blockquote br button code del div em h3 h4 h5 h6 hr input li ol p pre span strong table tbody td th thead tr ul"
    .split(" ");
const ATTRIBUTES =
  "aria-label checked class disabled href rel start tabindex target title type".split(" ");

function elementsCheck(text) {
  for (const n of elementsOf(text)) {
    if (!TAGS.includes(n.tag)) throw new Error("tag " + n.tag + " from " + JSON.stringify(text));
    for (const name of Object.keys(n.attributes))
      if (!ATTRIBUTES.includes(name))
        throw new Error("attribute " + name + " from " + JSON.stringify(text));
    if (n.tag === "a") {
      same(
        [/^https?:\/\/[^@]*$/.test(new URL(n.attributes.href).origin), n.attributes.rel],
        [true, "noopener noreferrer nofollow"]);
      same(/^https?:\/\//.test(n.attributes.href), true);
    }
    if (n.tag === "input") same(n.attributes.disabled, "");
    for (const x of n.inside)
      if (typeof x !== "string" && typeof x !== "object")
        throw new Error("neither text nor element");
  }
}

test("elements are of the list, whatever the text", () => {
  const pieces = [
    "*",
    "**",
    "_",
    "`",
    "```",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "> ",
    "# ",
    "|",
    "|-|",
    "[",
    "](",
    ")",
    "https://x.org/",
    "javascript:alert(1)",
    "<script>",
    "</script>",
    "<img src=x onerror=alert(1)>",
    "\\",
    "&lt;",
    " ",
    "a",
    "word ",
    "!",
    "~~",
    "<",
    ">",
    "\"",
    "'",
    "data:text/html,",
    "    ",
    "[ ] ",
    "\u0000",
    "\u202e",
    "é",
    "😀",
    "\ud800"
  ];
  let seed = 1;
  const next = (n) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return (seed >> 8) % n;
  };
  for (let i = 0; i < 20000; i++) {
    let text = "";
    for (let k = next(24); k >= 0; k--) text += pieces[next(pieces.length)];
    elementsCheck(text);
  }
});

test("an attribute that listens is refused as text", () => {
  document = pretendDocument();
  let threw = false;
  try {
    node("div", {onclick: "alert(1)"});
  } catch {
    threw = true;
  }
  document = undefined;
  same(threw, true);
});

// ---- colours ----

test("colours keep the text", () => {
  const code = "int x = 1; // a \"b\"\n/* c */ char *s = \"d\\\"e\"; 'f' 0x1f # no";
  for (const lang of ["c", "python", "weft", "sql", "", "nope", "__proto__", "constructor"])
    same(colourSplit(code, lang).map((x) => x.text).join(""), code);
  same(colourSplit("x = 1 # y", "py").map((x) => x.kind), ["", "number", "", "comment"]);
  same(colourSplit("return \"a", "c").map((x) => x.kind), ["word", "", "string"]);
});
