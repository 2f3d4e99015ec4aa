// unit_stream.js - server-sent events, however they are cut, and what the page takes of them.

function eventsOf(pieces) {
  const out = [];
  const parser = sseParser((data) => out.push(data));
  for (const p of pieces) parser.push(p);
  return out;
}

const STREAMS = [
  ["data: a\n\ndata: b\n\n", ["a", "b"]],
  ["data: a\r\n\r\ndata: b\r\rdata:c\n\n", ["a", "b", "c"]],
  ["data: a\ndata: b\n\n", ["a\nb"]],
  [": comment\n\nevent: x\nid: 1\ndata: a\nretry: 5\n\n", ["a"]],
  ["data:  two blanks\n\ndata\n\n", [" two blanks", ""]],
  ["data: cut", []],
  ["data: cut\n", []],
  ["datax: a\n\n data: b\n\n", []],
  ["data: é😀\n\n", ["é😀"]],
  ["\n\n\n", []],
];

for (const [text, expected] of STREAMS)
  test("events of " + JSON.stringify(text), () => {
    same(eventsOf([text]), expected);
    same(eventsOf(Array.from(text)), expected);
    for (let i = 0; i <= text.length; i++)
      same(eventsOf([text.slice(0, i), "", text.slice(i)]), expected);
  });

test("an event without end is refused", () => {
  for (const text of
         ["data: " +
            "a".repeat(1000),
          "data: a\n", "x".repeat(1000)]) {
    let message = "";
    const parser = sseParser(() => {});
    try {
      for (let i = 0; i < 1100000 / text.length; i++) parser.push(text);
    } catch (e) {
      message = e.message;
    }
    same(message, "an event of the stream is longer than 1048576 letters");
  }
});

test(
  "many small events are no long one",
  () => same(eventsOf(Array(200000).fill("data: abcdef\n\n")).length, 200000));

const CHUNKS = [
  [
    '{"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}',
    {text: "a", thought: "", end: "", usage: null}
  ],
  [
    '{"choices":[{"delta":{"reasoning_content":"h"}}]}',
    {text: "", thought: "h", end: "", usage: null}
  ],
  [
    '{"choices":[{"delta":{},"finish_reason":"length"}]}',
    {text: "", thought: "", end: "length", usage: null}
  ],
  [
    '{"choices":[],"usage":{"prompt_tokens":1}}',
    {text: "", thought: "", end: "", usage: {prompt_tokens: 1}}
  ],
  [
    '{"choices":[{"delta":{"content":{"toString":1}},"finish_reason":7}],"usage":3}',
    {text: "", thought: "", end: "", usage: null}
  ],
  ['{"choices":{"0":1}}', {text: "", thought: "", end: "", usage: null}],
  [
    '{"choices":[{"index":0,"text":" once","finish_reason":"stop"}]}',
    {text: " once", thought: "", end: "stop", usage: null}
  ],
  ["{}", {text: "", thought: "", end: "", usage: null}],
];

for (const [data, expected] of CHUNKS) test("event " + data, () => same(chatEvent(data), expected));

const BROKEN = [
  ['{"error":{"message":"no pages left"}}', "no pages left"],
  ['{"error":{}}', "the server failed and did not say why"],
  ["not json", "the server sent an event that is not JSON"],
  ["null", "the server sent an event that is not an object"],
];

for (const [data, expected] of BROKEN)
  test("event " + data, () => {
    let message = "";
    try {
      chatEvent(data);
    } catch (e) {
      message = e.message;
    }
    same(message, expected);
  });
