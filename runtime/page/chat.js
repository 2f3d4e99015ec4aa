// chat.js - the conversation that is open: sending, stopping, regenerating, editing, and drawing it
// while it grows.

const SAVE_MS = 2000; // an answer that grows is kept this often

const chat = {
  store: null, // set when the page starts
  talk: null,
  gone: new Set(), // ids of conversations that were deleted
  views: [],
  stick: true,  // the end stays in sight until the user scrolls away from it
  drawn: false, // a frame is asked for
  savedAt: 0,
};

function chatSave(talk) {
  if (chat.gone.has(talk.id)) return;
  const {kept, dropped} = chat.store.save(talk);
  chat.savedAt = performance.now();
  for (const title of dropped)
    noticeShow("No more room: the oldest conversation is gone (" + (title || "unreadable") + ").");
  if (!kept)
    noticeShow(
      "This conversation cannot be kept: the browser has no room for it, or keeps nothing.");
}

// ---- drawing ----

function chatStick() {
  const log = byId("log");
  if (chat.stick) log.scrollTop = log.scrollHeight;
  nodeShow(byId("log-end"), !chat.stick);
}

function chatEmptyNode() {
  return node(
    "div", {class: "empty"}, node("h2", null, "What shall it be?"),
    modelChats(chat.talk.model) ?
      null :
      node("p", null, "This model has no chat template: it continues the text that you write."),
    node(
      "p", {class: "hint"},
      "Conversations stay in this browser. Enter sends, Shift+Enter begins a new line, ? lists the keys."));
}

function chatDraw() {
  const {talk} = chat;
  const n = talk.messages.length;
  const actions = {
    regenerate: chatRegenerate,
    edit: chatEdit,
    redraw: chatDraw,
    isBusy: () => answersRunning.has(talk.id),
    changed() {
      chatSave(talk);
      chatDraw();
    },
  };
  chat.views = talk.messages.map(
    (m, i) =>
      m.role === "user" ? userView(m, n - 1 - i, actions) : assistantView(m, i === n - 1, actions));
  const log = byId("log");
  const top = log.scrollTop;
  nodePut(log, n ? chat.views.map((v) => v.root) : chatEmptyNode());
  log.scrollTop = top;
  chatDoing();
  chatStick();
}

// What is going on, and which of Send and Stop there is.
function chatDoing() {
  const busy = answersRunning.has(chat.talk.id);
  const last = chat.talk.messages[chat.talk.messages.length - 1];
  nodeShow(byId("stop"), busy);
  nodeShow(byId("send"), !busy);
  const waits = busy && last && last.role === "assistant" && !versionShown(last).text &&
    !versionShown(last).thought;
  byId("doing").textContent = waits ? "Reading…" : busy ? "Writing…" : "";
}

// The last message has changed. Elements that stay the same stay there, with what is selected in
// them.
function chatUpdate() {
  if (chat.views.length) chat.views[chat.views.length - 1].update();
  chatDoing();
  chatStick();
}

// There is more of an answer: drawn once a frame, however many tokens come.
function chatGrow(talk) {
  if (answersRunning.has(talk.id) && performance.now() - chat.savedAt > SAVE_MS) chatSave(talk);
  if (chat.talk !== talk || chat.drawn) return;
  chat.drawn = true;
  requestAnimationFrame(() => {
    chat.drawn = false;
    if (chat.talk === talk) chatUpdate();
  });
}

// ---- doing ----

function chatOpen(talk) {
  chat.talk = talk;
  chat.stick = true;
  chatDraw();
  settingsDraw();
  modelsDraw();
  talkListDraw();
}

async function chatAnswer(talk, message) {
  const run = answerRun(talk, message, modelChats(talk.model), () => chatGrow(talk));
  if (talk === chat.talk) chatDraw();
  talkListDraw();
  const status = await run;
  talk.at = Date.now();
  chatSave(talk);
  if (talk === chat.talk) chatUpdate();
  talkListDraw();
  if (status === 401 && (await keyAsk()) && !answersRunning.has(talk.id)) {
    message.versions[message.shown] = versionNew();
    await chatAnswer(talk, message);
  }
}

// Puts a message at the end and asks for its answer. Gives whether it went.
function chatSend(text, files) {
  const {talk} = chat;
  if (answersRunning.has(talk.id) || (text.trim() === "" && files.length === 0)) return false;
  if (talk.messages.length + 2 > MESSAGES_MAX) {
    noticeShow("A conversation has at most " + MESSAGES_MAX + " messages. Begin a new one.");
    return false;
  }
  if (!talk.named && talk.messages.length === 0) talk.title = talkTitle(text || files[0].name);
  talk.at = Date.now();
  const message = {role: "assistant", versions: [versionNew()], shown: 0};
  talk.messages.push({role: "user", text, files}, message);
  chat.stick = true;
  chatSave(talk);
  chatAnswer(talk, message);
  return true;
}

function chatRegenerate() {
  const {talk} = chat;
  const message = talk.messages[talk.messages.length - 1];
  if (!message || message.role !== "assistant" || answersRunning.has(talk.id)) return;
  const v = versionShown(message);
  if (v.text === "" && v.thought === "")
    message.versions.splice(message.shown, 1); // one that failed is not worth keeping
  message.versions.push(versionNew());
  message.versions.splice(0, message.versions.length - VERSIONS_MAX);
  message.shown = message.versions.length - 1;
  chat.stick = true;
  chatAnswer(talk, message);
}

function chatEdit(message, text) {
  const {talk} = chat;
  if (answersRunning.has(talk.id)) {
    noticeShow("Stop the answer that is being written first.");
    return;
  }
  const files = message.files;
  if (text.trim() === "" && files.length === 0) return;
  const kept = talk.messages.slice(0, talk.messages.indexOf(message));
  talk.messages = kept;
  chatSend(text, files);
}

function chatStop() { return answerStop(chat.talk); }

// The last message of the user, ready to be changed.
function chatEditLast() {
  const users = chat.views.filter((v) => v.edit);
  if (users.length) users[users.length - 1].edit();
}

function chatSetUp() {
  const log = byId("log");
  log.addEventListener("scroll", () => {
    chat.stick = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    nodeShow(byId("log-end"), !chat.stick);
  });
  byId("log-end").addEventListener("click", () => {
    chat.stick = true;
    chatStick();
  });
  byId("stop").addEventListener("click", chatStop);
  // what came so far survives a page that is closed in the middle of an answer
  addEventListener("pagehide", () => {
    if (answersRunning.has(chat.talk.id)) chat.store.save(chat.talk);
  });
}
