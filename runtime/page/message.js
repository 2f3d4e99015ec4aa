// message.js - one message on the page: who, what, what can be done with it.

const END_WORDS = {
  length: "cut: it reached the limit of tokens",
  stopped: "stopped",
  content_filter: "filtered",
  tool_calls: "asked for a tool",
};

function usageText(u) {
  const parts = [];
  if (u.tokens !== undefined) parts.push(numberText(u.tokens) + " tokens");
  if (u.rate !== undefined) parts.push(numberText(u.rate) + " tok/s");
  if (u.first_ms !== undefined)
    parts.push("first after " + numberText(Math.round(u.first_ms)) + " ms");
  if (u.prompt !== undefined)
    parts.push(
      "prompt " + numberText(u.prompt) +
      (u.cached ? ", " + numberText(u.cached) + " of them known" : ""));
  return parts.join(" · ");
}

function filesNode(files) {
  if (files.length === 0) return null;
  return node(
    "ul", {class: "files"},
    files.map(
      (f) => node(
        "li", null,
        node(
          "details", null,
          node("summary", null, f.name + " (" + numberText(f.text.length) + " letters)"),
          node("pre", {tabindex: "0"}, f.text)))));
}

// The field in which a message is changed. Gives its element.
function editNode(message, after, actions) {
  const field = node(
    "textarea",
    {"aria-label": "Edit the message", rows: Math.min(12, message.text.split("\n").length + 1)});
  field.value = message.text;
  const send = () => actions.edit(message, field.value);
  field.addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      e.stopPropagation();
      actions.redraw();
    } else if (e.key === "Enter" && !e.shiftKey && !e.isComposing && !keysAreTouch()) {
      e.preventDefault();
      send();
    }
  });
  return node(
    "div", {class: "edit"}, field,
    after > 0 ?
      node(
        "p", {class: "hint"},
        "What follows (" + after + (after === 1 ? " message" : " messages") + ") is dropped.") :
      null,
    node(
      "div", {class: "dialog-row"}, buttonNode("Cancel", {class: "quiet", onclick: actions.redraw}),
      buttonNode("Send", {class: "edit-send", onclick: send})));
}

function userView(message, after, actions) {
  const body = node("div", {class: "body as-typed"}, message.text);
  const edit = buttonNode("Edit", {
    class: "quiet",
    onclick: () => {
      nodePut(root, editNode(message, after, actions));
      root.querySelector("textarea").focus();
    }
  });
  const copy = buttonNode("Copy", {class: "quiet", onclick: () => textCopy(message.text, copy)});
  const root = node(
    "article", {class: "message user", "aria-label": "You"}, filesNode(message.files), body,
    node("div", {class: "deeds"}, copy, edit));
  return {root, update() {}, edit: () => edit.click()};
}

// Which of several versions is shown; null where there is one.
function versionsNode(message, actions, busy) {
  const n = message.versions.length;
  if (n < 2) return null;
  const to = (i) => buttonNode(
    i < message.shown ? "Version before" : "Version after", {
      class: "quiet",
      disabled: busy || i < 0 || i >= n,
      onclick: () => {
        message.shown = i;
        actions.changed();
      }
    },
    i < message.shown ? "‹" : "›");
  return node(
    "span", {class: "versions"}, to(message.shown - 1), message.shown + 1 + "/" + n,
    to(message.shown + 1));
}

function assistantView(message, isLast, actions) {
  const thought = node("details", {class: "thought"}, node("summary", null, "Thoughts"));
  const thoughtText = node("div", {class: "as-typed"});
  const body = node("div", {class: "body"});
  const fault = node("p", {class: "fault", role: "alert"});
  const foot = node("div", {class: "deeds"});
  const root = node(
    "article", {class: "message assistant", "aria-label": "Model"}, thought, body, fault, foot);
  const markdown = markdownView(body);
  thought.append(thoughtText);

  function update() {
    const v = versionShown(message);
    const busy = actions.isBusy();
    const writing = busy && isLast;
    nodeShow(thought, v.thought !== "");
    thoughtText.textContent = v.thought;
    markdown.set(v.text);
    root.classList.toggle("writing", writing);
    root.setAttribute("aria-busy", String(writing));
    nodeShow(fault, v.fault !== "");
    fault.textContent = v.fault;
    if (writing && foot.children.length === 0) return;
    const copy = buttonNode(
      "Copy", {class: "quiet", onclick: () => textCopy(versionShown(message).text, copy)});
    const again = isLast ?
      buttonNode("Regenerate", {class: "quiet regenerate", onclick: actions.regenerate}) :
      null;
    const words = [END_WORDS[v.end], usageText(v.usage)].filter((x) => x).join(" · ");
    nodePut(foot, writing ? null : [
      copy, again, isLast ? versionsNode(message, actions, busy) : null,
      node("span", {class: "hint"}, words)
    ]);
  }

  update();
  return {root, update};
}
