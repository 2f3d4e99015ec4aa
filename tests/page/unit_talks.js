// unit_talks.js - conversations kept and read back, settings, files, and what is sent of them.

// localStorage with room for so many letters.
function pretendStorage(room) {
  const map = new Map();
  return {
    map,
    get length() { return map.size; },
    key: (i) => Array.from(map.keys())[i],
    getItem: (k) => (map.has(k) ? map.get(k) : null),
    removeItem: (k) => map.delete(k),
    setItem(k, v) {
      let used = v.length;
      for (const [other, text] of map)
        if (other !== k) used += text.length;
      if (used > room) throw new Error("QuotaExceededError");
      map.set(k, v);
    },
  };
}

function talkOf(id, at, text) {
  const talk = {...talkNew(), id, at, title: "talk " + id};
  talk.messages =
    [{role: "user", text, files: []}, {role: "assistant", versions: [versionNew()], shown: 0}];
  return talk;
}

test("a conversation comes back as it went", () => {
  const store = talkStore(pretendStorage(1e6));
  const talk = talkOf("1a", 5, "hello");
  talk.sampling = {temperature: 0.5, stop: ["x"]};
  talk.messages[1].versions[0] =
    {text: "hi", thought: "t", end: "stop", fault: "", usage: {tokens: 3, rate: 1.5}};
  same(store.save(talk), {kept: true, dropped: []});
  same(store.load("1a"), talk);
  same(store.list(), [talk]);
  store.remove("1a");
  same(store.list(), []);
});

test("the newest is first, other entries are left alone, broken ones are not seen", () => {
  const storage = pretendStorage(1e6);
  const store = talkStore(storage);
  store.save(talkOf("1", 1, "a"));
  store.save(talkOf("2", 2, "b"));
  storage.setItem("other", "x");
  for (const [i, text] of
         ["", "{", "null", "[]", "7", "{\"id\":\"zz\",\"messages\":[]}",
          "{\"id\":\"3\",\"messages\":{}}"]
           .entries())
    storage.setItem(TALK_PREFIX + "bad" + i, text);
  same(store.list().map((t) => t.id), ["2", "1"]);
  same(storage.getItem("other"), "x");
});

test("where there is no room, the oldest goes", () => {
  const storage = pretendStorage(5000);
  const store = talkStore(storage);
  for (let i = 1; i <= 3; i++) same(store.save(talkOf(String(i), i, "a".repeat(1000))).kept, true);
  const {kept, dropped} = store.save(talkOf("4", 4, "a".repeat(2500)));
  same([kept, dropped, store.list().map((t) => t.id)], [true, ["talk 1", "talk 2"], ["4", "3"]]);
  same(store.save(talkOf("5", 5, "a".repeat(9000))), {kept: false, dropped: ["talk 3", "talk 4"]});
});

test("there are at most so many", () => {
  const store = talkStore(pretendStorage(1e9));
  for (let i = 1; i <= TALKS_MAX; i++) same(store.save(talkOf(i.toString(16), i, "a")).dropped, []);
  same(store.save(talkOf("ffff", 1000, "a")).dropped, ["talk 1"]);
  same(store.list().length, TALKS_MAX);
  same(store.save(talkOf("fffe", 1001, "a".repeat(TALKS_LETTERS_MAX))).kept, false);
});

test("a browser that keeps nothing", () => {
  const store = talkStore(null);
  same([store.save(talkOf("1", 1, "a")).kept, store.list(), store.load("1")], [false, [], null]);
});

test("what was kept is checked", () => {
  const bad = {
    id: "1",
    messages: [
      null, 7, {role: "system"}, {role: "assistant", versions: []}, {role: "user"},
      {role: "user", text: {}, files: [null, {name: 3, text: "t"}, {text: 4}]},
      {role: "assistant", versions: [null, {text: 5, usage: {tokens: "x", rate: 2}}], shown: 9}
    ],
    title: {},
    at: "x",
    sampling: {temperature: "hot", top_p: 7, top_k: 40, stop: [1], seed: -1, other: 1}
  };
  const talk = talkCheck(bad);
  same(talk.messages, [
    {role: "user", text: "", files: []},
    {role: "user", text: "", files: [{name: "file", text: "t"}]},
    {role: "assistant", versions: [versionNew(), {...versionNew(), usage: {rate: 2}}], shown: 1}
  ]);
  same([talk.title, talk.at, talk.sampling, talk.model], ["Conversation", 0, {top_k: 40}, ""]);
  for (const x of [null, 1, "a", [], {}, {id: "../x", messages: []}, {id: 5, messages: 1}])
    same(talkCheck(x), null);
});

const READS = [
  ["temperature", "", undefined],
  ["temperature", " 0.5 ", 0.5],
  ["temperature", "0", 0],
  ["temperature", "2.1", "expected 0 to 2"],
  ["temperature", "warm", "not a number"],
  ["temperature", "NaN", "not a number"],
  ["temperature", "Infinity", "not a number"],
  ["top_k", "4.5", "expected a whole number"],
  ["top_k", "-1", "expected 0 to 1000"],
  ["seed", "9007199254740993", "expected a whole number"],
  ["stop", "", undefined],
  ["stop", "a\n\nb", ["a", "b"]],
  ["stop", "1\n2\n3\n4\n5", "5 texts, expected at most 4"],
];

for (const [name, text, expected] of READS)
  test("setting " + name + " " + JSON.stringify(text), () => {
    const got = settingRead(SAMPLING.find((r) => r.name === name), text);
    same(got.fault || got.value, expected);
  });

test("titles", () => {
  same(
    [talkTitle("  a\nb"), talkTitle(""), talkTitle("x".repeat(200)).length],
    ["a", "New conversation", TITLE_MAX]);
});

test("files are text in UTF-8", () => {
  const bytes = (s) => new TextEncoder().encode(s);
  same(fileText("a.txt", bytes("hé\n")), {name: "a.txt", text: "hé\n"});
  same(fileText("a.bin", new Uint8Array([0xff, 0xfe])).fault, "a.bin is not text in UTF-8");
  same(fileText("a.bin", bytes("a\0b")).fault, "a.bin is not text: it has zero bytes");
  same(
    fileText("big", new Uint8Array(FILE_MAX + 1)).fault,
    "big has 256.0 KiB, expected at most 256.0 KiB");
});

test("a file cannot end its own fence", () => {
  const text = filesInto("q", [{name: "a.md", text: "```\n````\n"}]);
  same(text, "a.md:\n`````\n```\n````\n`````\n\nq");
  same(filesInto("q", []), "q");
});

test("what is sent", () => {
  const talk = talkOf("1", 1, "q");
  Object.assign(talk, {model: "m", system: "s", sampling: {top_k: 4}});
  talk.messages[1].versions = [{...versionNew(), text: "one"}, {...versionNew(), text: "two"}];
  talk.messages.push(
    {role: "user", text: "r", files: []}, {role: "assistant", versions: [versionNew()], shown: 0});
  const settings =
    {stream: true, stream_options: {include_usage: true}, top_k: 4, max_completion_tokens: 9};
  talk.sampling.max_completion_tokens = 9;
  same(chatAsk(talk, 3), {
    path: "/v1/chat/completions",
    body: {
      model: "m",
      messages: [
        {role: "system", content: "s"}, {role: "user", content: "q"},
        {role: "assistant", content: "one"}, {role: "user", content: "r"}
      ],
      ...settings
    }
  });
  same(chatAsk({...talk, system: " "}, 1).body.messages, [{role: "user", content: "q"}]);
  same(textAsk({...talk, system: ""}, 3), {
    path: "/v1/completions",
    body: {
      model: "m",
      stream: true,
      stream_options: {include_usage: true},
      top_k: 4,
      prompt: "qoner",
      max_tokens: 9
    }
  });
  talk.messages[1].versions = [{...versionNew(), fault: "no"}];
  talk.messages[1].shown = 0;
  same(chatAsk({...talk, system: ""}, 3).body.messages, [{role: "user", content: "q\n\nr"}]);
});
