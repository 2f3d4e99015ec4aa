// talks.js - conversations, and how the browser keeps them: an entry of localStorage each. What is
// read back is checked, since anything may be there. Bounds: conversations, letters in all; the
// oldest goes when a new one needs room.
//
//   talk     {id, title, named, at, model, system, sampling, messages}
//   message  {role: "user", text, files: [{name, text}]} or {role: "assistant", versions:
//   [version], shown} version  {text, thought, end, fault, usage}   end: why it ended; fault: what
//   went wrong; usage: tokens and times

const TALKS_MAX = 200;
const TALKS_LETTERS_MAX = 4000000; // browsers give five million
const TALK_PREFIX = "weft.talk.";
const MESSAGES_MAX = 2000;
const TEXT_MAX = 1000000;
const TITLE_MAX = 80;
const VERSIONS_MAX = 10;

function talkNew(like) {
  const from = like || {};
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return {
    id: Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join(""),
    title: "New conversation",
    named: false,
    at: Date.now(),
    model: from.model || "",
    system: from.system || "",
    sampling: {...from.sampling},
    messages: [],
  };
}

function versionNew() { return {text: "", thought: "", end: "", fault: "", usage: {}}; }

function versionShown(message) { return message.versions[message.shown]; }

// A title of the first thing that was said.
function talkTitle(text) {
  const line = text.trim().split("\n", 1)[0].trim();
  return line.length > TITLE_MAX ? line.slice(0, TITLE_MAX - 1) + "…" : line || "New conversation";
}

// ---- checking what was kept ----

function textCheck(x, most) { return typeof x === "string" ? x.slice(0, most) : ""; }

function versionCheck(x) {
  const v = versionNew();
  if (typeof x !== "object" || x === null) return v;
  for (const name of ["text", "thought", "end", "fault"]) v[name] = textCheck(x[name], TEXT_MAX);
  const usage = typeof x.usage === "object" && x.usage !== null ? x.usage : {};
  for (const name of ["prompt", "cached", "tokens", "first_ms", "rate"])
    if (typeof usage[name] === "number") v.usage[name] = usage[name];
  return v;
}

function messageCheck(x) {
  if (typeof x !== "object" || x === null) return null;
  if (x.role === "user") {
    const files = Array.isArray(x.files) ? x.files.slice(0, FILES_MAX) : [];
    return {
      role: "user",
      text: textCheck(x.text, TEXT_MAX),
      files:
        files.filter((f) => f && typeof f.text === "string")
          .map(
            (f) => ({name: textCheck(f.name, 200) || "file", text: textCheck(f.text, FILE_MAX)})),
    };
  }
  if (x.role !== "assistant" || !Array.isArray(x.versions) || x.versions.length === 0) return null;
  const versions = x.versions.slice(-VERSIONS_MAX).map(versionCheck);
  const fits = Number.isInteger(x.shown) && x.shown >= 0 && x.shown < versions.length;
  return {role: "assistant", versions, shown: fits ? x.shown : versions.length - 1};
}

// A conversation of whatever JSON.parse gave, or null where it is none.
function talkCheck(x) {
  if (
    typeof x !== "object" || x === null || !/^[0-9a-f]{1,32}$/.test(x.id) ||
    !Array.isArray(x.messages))
    return null;
  return {
    id: x.id,
    title: textCheck(x.title, TITLE_MAX) || "Conversation",
    named: x.named === true,
    at: typeof x.at === "number" && isFinite(x.at) ? x.at : 0,
    model: textCheck(x.model, 200),
    system: textCheck(x.system, TEXT_MAX),
    sampling: samplingCheck(x.sampling),
    messages: x.messages.slice(0, MESSAGES_MAX).map(messageCheck).filter((m) => m !== null),
  };
}

// ---- keeping ----

// storage: localStorage or what acts like it; null where the browser keeps nothing.
function talkStore(storage) {
  function read(key) {
    try {
      return talkCheck(JSON.parse(storage.getItem(key)));
    } catch {
      return null;
    }
  }

  function keys() {
    const out = [];
    for (let i = 0; storage && i < storage.length; i++)
      if (storage.key(i).startsWith(TALK_PREFIX)) out.push(storage.key(i));
    return out;
  }

  // Drops the oldest other than `talk`; gives its title, or null where there is none.
  function dropOldest(talk) {
    const others =
      keys().filter((k) => k !== TALK_PREFIX + talk.id).map((key) => ({key, talk: read(key)}));
    if (others.length === 0) return null;
    others.sort((a, b) => (a.talk ? a.talk.at : 0) - (b.talk ? b.talk.at : 0));
    storage.removeItem(others[0].key);
    return others[0].talk ? others[0].talk.title : "";
  }

  function overfull(talk, letters) {
    const others = keys().filter((k) => k !== TALK_PREFIX + talk.id);
    const sum = others.reduce((n, k) => n + storage.getItem(k).length, letters);
    return others.length + 1 > TALKS_MAX || sum > TALKS_LETTERS_MAX;
  }

  return {
    // Newest first.
    list() { return keys().map(read).filter((t) => t !== null).sort((a, b) => b.at - a.at); },
    load(id) { return storage ? read(TALK_PREFIX + id) : null; },
    remove(id) {
      if (storage) storage.removeItem(TALK_PREFIX + id);
    },
    // {kept, dropped}: whether it is kept, and the titles that had to go for it.
    save(talk) {
      const dropped = [];
      if (!storage) return {kept: false, dropped};
      const text = JSON.stringify(talk);
      if (text.length > TALKS_LETTERS_MAX) return {kept: false, dropped};
      while (overfull(talk, text.length)) dropped.push(dropOldest(talk));
      for (;;) {
        try {
          storage.setItem(TALK_PREFIX + talk.id, text);
          return {kept: true, dropped};
        } catch {
          const title = dropOldest(talk); // no room: other pages of this host use it too
          if (title === null) return {kept: false, dropped};
          dropped.push(title);
        }
      }
    },
  };
}

// The store of this browser. Reading localStorage itself may fail, where cookies are off.
function talkStoreHere() {
  try {
    return talkStore(window.localStorage);
  } catch {
    return talkStore(null);
  }
}
