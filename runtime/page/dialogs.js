// dialogs.js - what the page says and asks outside of its views: notices, a question, the key, the
// list of keys.

const NOTICES_MAX = 4;

function noticeShow(text) {
  const list = byId("notices");
  const old = Array.from(list.children).find((n) => n.dataset.text === text);
  if (old) old.remove();
  const n = node(
    "div", {class: "notice", "data-text": text}, node("span", null, text),
    buttonNode("Dismiss", {class: "quiet", onclick: () => n.remove()}, "×"));
  list.append(n);
  while (list.children.length > NOTICES_MAX) list.firstElementChild.remove();
}

// A question with two answers, or for a text where `text` is not null. Gives the text (or ""), or
// null for no.
function ask(title, yes, label, text) {
  const dialog = byId("ask-dialog");
  const field = byId("ask-text");
  byId("ask-title").textContent = title;
  byId("ask-yes").textContent = yes;
  byId("ask-label").textContent = label || "";
  nodeShow(field, text !== null);
  field.value = text === null ? "" : text;
  dialog.returnValue = "cancel";
  dialog.showModal();
  (text === null ? byId("ask-yes") : field).focus();
  return new Promise((done) => {
    dialog.addEventListener(
      "close", () => done(dialog.returnValue === "yes" ? field.value : null), {once: true});
  });
}

// A form of method "dialog" takes its first button for Enter: these take the one that says yes.
function dialogsSetUp() {
  for (const [dialog, yes] of [["ask-dialog", "ask-yes"], ["key-dialog", "key-use"]])
    byId(dialog).addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || e.target.tagName !== "INPUT") return;
      e.preventDefault();
      byId(yes).click();
    });
}

const KEY_PLACE = "weft.key"; // in sessionStorage: gone with the tab

function keyLoad() {
  try {
    server.key = sessionStorage.getItem(KEY_PLACE) || "";
  } catch {
    server.key = "";
  }
}

// Asks once for a key, whoever needs it; resolves to whether there is a new one.
let keyAsking = null;

function keyAsk() {
  if (keyAsking) return keyAsking;
  const dialog = byId("key-dialog");
  byId("key").value = "";
  dialog.returnValue = "cancel";
  dialog.showModal();
  keyAsking = new Promise((done) => {
    dialog.addEventListener("close", () => {
      keyAsking = null;
      const given = dialog.returnValue === "use" && byId("key").value.trim() !== "";
      if (given) {
        server.key = byId("key").value.trim();
        try {
          sessionStorage.setItem(KEY_PLACE, server.key);
        } catch {
          // then it lasts as long as the page
        }
      }
      byId("key").value = "";
      done(given);
    }, {once: true});
  });
  return keyAsking;
}

// Runs what asks the server; after a 401, once more with the key that the user gave.
async function withKey(work) {
  try {
    return await work();
  } catch (e) {
    if (e.status !== 401 || !(await keyAsk())) throw e;
    return work();
  }
}
