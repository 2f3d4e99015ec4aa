// talk_list.js - the conversations at the side: opening, naming, deleting, and all of them as a
// file.

function talkListShow(shown) {
  document.body.classList.toggle("talks-open", shown);
  byId("menu").setAttribute("aria-expanded", String(shown));
}

async function talkRename(talk) {
  const title = await ask("Name of the conversation", "Rename", "Name", talk.title);
  if (title === null || title.trim() === "") return;
  talk.title = title.trim().slice(0, TITLE_MAX);
  talk.named = true;
  chatSave(talk);
  talkListDraw();
}

function talkForget(talk) {
  chat.gone.add(talk.id); // an answer that ends later must not bring it back
  answerStop(talk);
  chat.store.remove(talk.id);
}

async function talkDelete(talk) {
  if ((await ask("Delete “" + talk.title + "”?", "Delete", "", null)) === null) return;
  talkForget(talk);
  const rest = chat.store.list();
  if (talk.id === chat.talk.id) chatOpen(rest[0] || talkNew(talk));
  talkListDraw();
}

function talkRow(talk) {
  const here = talk.id === chat.talk.id;
  const open = node(
    "button", {
      type: "button",
      class: "talk",
      "aria-current": here ? "true" : null,
      title: talk.title,
      onclick: () => {
        talkListShow(false);
        if (!here) chatOpen(talk);
        byId("input").focus();
      },
      onkeydown: (e) => {
        if (e.key === "F2") talkRename(talk);
        if (e.key === "Delete") talkDelete(talk);
      },
    },
    answersRunning.has(talk.id) ? "… " + talk.title : talk.title);
  return node(
    "li", {class: here ? "here" : null}, open,
    buttonNode("Rename", {class: "quiet", onclick: () => talkRename(talk)}, "✎"),
    buttonNode("Delete", {class: "quiet", onclick: () => talkDelete(talk)}, "×"));
}

function talkListDraw() {
  // the one that is open and those that are being answered are newer here than in the browser's
  // store
  const live = (t) =>
    (answersRunning.has(t.id) ? answersRunning.get(t.id).talk :
       t.id === chat.talk.id  ? chat.talk :
                                t);
  const list = chat.store.list().map(live);
  // the list is made anew: who was on a conversation stays on it
  const at =
    Array.from(byId("talk-list").querySelectorAll("button")).indexOf(document.activeElement);
  nodePut(byId("talk-list"), list.map(talkRow));
  const buttons = byId("talk-list").querySelectorAll("button");
  if (at >= 0 && at < buttons.length) buttons[at].focus();
  document.title = chat.talk.messages.length ? chat.talk.title + " - Weft" : "Weft";
}

function talksExport() {
  const text = JSON.stringify(chat.store.list(), null, 1);
  const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  const link = node("a", {href: url, download: "weft-conversations.json"});
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function talksClear() {
  const n = chat.store.list().length;
  if (
    n === 0 ||
    (await ask("Delete all conversations (" + n + ")?", "Delete all", "", null)) === null)
    return;
  chat.store.list().forEach(talkForget);
  chatOpen(talkNew(chat.talk));
}

function talkListNew() {
  chatOpen(talkNew(chat.talk));
  talkListShow(false);
  byId("input").focus();
}

function talkListSetUp() {
  byId("menu").addEventListener(
    "click", () => talkListShow(!document.body.classList.contains("talks-open")));
  byId("talk-new").addEventListener("click", talkListNew);
  byId("talks-export").addEventListener("click", talksExport);
  byId("talks-clear").addEventListener("click", talksClear);
  // another tab of this page changed one
  addEventListener("storage", (e) => {
    if (e.key !== null && !e.key.startsWith(TALK_PREFIX)) return;
    const kept = chat.store.load(chat.talk.id);
    if (
      kept && !answersRunning.has(chat.talk.id) &&
      JSON.stringify(kept) !== JSON.stringify(chat.talk))
      chatOpen(kept);
    else
      talkListDraw();
  });
}
