// keys.js - keys that work anywhere on the page, and their list.

function keysSetUp(tabs) {
  const toField = () => {
    tabs.show("chat");
    byId("input").focus();
  };
  // clang-format off
  const table = [
    { text: "Enter", does: "send the message" },
    { text: "Shift+Enter", does: "a new line" },
    { text: "Esc", does: "stop the answer, close what is open", key: "Escape", anywhere: true, act: keysEscape },
    { text: "↑", does: "in the empty field: edit the last message" },
    { text: "/", does: "to the message field", key: "/", act: toField },
    { text: "Alt+N", does: "new conversation", key: "n", alt: true, anywhere: true, act: () => {
      tabs.show("chat");
      talkListNew();
    } },
    { text: "Alt+R", does: "regenerate the answer", key: "r", alt: true, anywhere: true, act: chatRegenerate },
    { text: "Alt+S", does: "settings", key: "s", alt: true, anywhere: true, act: () => settingsToggle(byId("settings").hidden) },
    { text: "Alt+1, 2, 3", does: "chat, server, model" },
    ...tabs.names.map((name, i) => ({ key: String(i + 1), alt: true, anywhere: true, act: () => tabs.show(name) })),
    { text: "F2, Delete", does: "on a conversation: rename it, delete it" },
    { text: "?", does: "this list", key: "?", act: () => byId("keys-dialog").showModal() },
  ];
  // clang-format on
  nodePut(
    byId("keys-list"),
    table.filter((k) => k.text)
      .map((k) => node("div", null, node("dt", null, k.text), node("dd", null, k.does))));
  byId("keys").addEventListener("click", () => byId("keys-dialog").showModal());
  document.addEventListener("keydown", (e) => {
    if (document.querySelector("dialog[open]") || e.ctrlKey || e.metaKey || e.isComposing) return;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
    // on a Mac, Alt changes the letter: the key itself says which it was
    const name = e.altKey && /^(Key|Digit)./.test(e.code) ? e.code.slice(-1).toLowerCase() : e.key;
    const row = table.find((k) => k.act && k.key === name && Boolean(k.alt) === e.altKey);
    if (!row || (typing && !row.anywhere)) return;
    if (row.act() !== false) e.preventDefault();
  });
}

function keysEscape() {
  if (chatStop()) return true;
  if (document.body.classList.contains("talks-open")) {
    talkListShow(false);
    byId("menu").focus();
    return true;
  }
  if (!byId("settings").hidden) {
    settingsToggle(false);
    byId("settings-open").focus();
    return true;
  }
  return false;
}
