// markdown_nodes.js - blocks and marks of Markdown as elements. The tags are those below and no
// others, all text is text, and an address got through urlSafe: nothing that a model writes can
// run, load or look like a part of the page.

const MARK_TAGS = {
  em: "em",
  strong: "strong",
  del: "del"
};

function linkNode(x) {
  // where it goes can be seen before it is followed, whatever its text says
  return node(
    "a", {href: x.url, title: x.url, target: "_blank", rel: "noopener noreferrer nofollow"},
    inlineNodes(x.inside));
}

function inlineNodes(items) {
  return items.map((x) => {
    if (typeof x === "string") return x;
    if (x.type === "break") return node("br");
    if (x.type === "code") return node("code", null, x.text);
    if (x.type === "link") return linkNode(x);
    return node(MARK_TAGS[x.type], null, inlineNodes(x.inside));
  });
}

function textCopy(text, button) {
  const before = button.textContent;
  const say = (word) => {
    button.textContent = word;
    setTimeout(() => (button.textContent = before), 1500);
  };
  // the clipboard is there only over https and on this machine
  if (!navigator.clipboard)
    say("Select and copy by hand");
  else
    navigator.clipboard.writeText(text).then(() => say("Copied"), () => say("Not allowed"));
}

function codeNode(x) {
  // code that is still being written changes with every token: colours come with its end
  const text = x.open ? [x.text] : colourNodes(x.text, x.lang);
  const copy =
    buttonNode("Copy", {class: "quiet code-copy", onclick: () => textCopy(x.text, copy)});
  return node(
    "div", {class: "code"},
    node("div", {class: "code-head"}, node("span", null, x.lang || "text"), copy),
    node("pre", {tabindex: "0"}, node("code", null, text)));
}

function listNode(x) {
  const items = x.items.map((item) => {
    const box = item.done === null ?
      null :
      node("input", {type: "checkbox", disabled: true, checked: item.done});
    const only = item.blocks.length > 0 && item.blocks[0].type === "para";
    const head = only ? inlineNodes(inlineParse(item.blocks[0].text)) : [];
    return node(
      "li", {class: box ? "task" : null}, box, head,
      blockNodes(only ? item.blocks.slice(1) : item.blocks));
  });
  if (x.start === null) return node("ul", null, items);
  return node("ol", {start: x.start === 1 ? null : x.start}, items);
}

function tableNode(x) {
  const row = (cells, tag) => node(
    "tr", null,
    cells.map((c, i) => node(tag, {class: "to-" + x.align[i]}, inlineNodes(inlineParse(c)))));
  const [head, ...rows] = x.rows;
  return node(
    "div", {class: "table", tabindex: "0"},
    node(
      "table", null, node("thead", null, row(head, "th")),
      node("tbody", null, rows.map((r) => row(r, "td")))));
}

const BLOCK_NODES = {
  para: (x) => node("p", null, inlineNodes(inlineParse(x.text))),
  heading: (x) => node(
    "h" + Math.min(x.level + 2, 6), null,
    inlineNodes(inlineParse(x.text))), // h1, h2 are the page's
  code: codeNode,
  quote: (x) => node("blockquote", null, blockNodes(x.blocks)),
  list: listNode,
  table: tableNode,
  rule: () => node("hr"),
};

function blockNodes(blocks) { return blocks.map((x) => BLOCK_NODES[x.type](x)); }

// A text that grows: blocks that have not changed keep their elements, so that a selection stays
// and time is not wasted.
function markdownView(root) {
  let shown = []; // the source of each child of root
  return {
    set(text) {
      const blocks = markdownParse(text);
      let same = 0;
      while (same < shown.length && same < blocks.length && shown[same] === blocks[same].source)
        same++;
      while (root.children.length > same) root.lastElementChild.remove();
      nodeFill(root, blockNodes(blocks.slice(same)));
      shown = blocks.map((x) => x.source);
    },
  };
}
