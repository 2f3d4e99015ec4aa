// sse.js - server-sent events: pieces of text in, the data of each event out. As in the HTML
// standard, section 9.2.6; only the field `data` is of use here. An event that the end of the
// stream cuts is dropped.

const SSE_EVENT_MAX =
  1 << 20; // letters of one event, its line ends too; more is a fault of the server

function sseParser(take) {
  let rest = ""; // the line that has no end yet
  let data = []; // lines of the event that has no end yet
  let size = 0;
  let afterCr = false; // a line feed that comes next belongs to the line end before

  function line(text) {
    if (text === "") {
      const event = data;
      data = [];
      size = 0;
      if (event.length > 0) take(event.join("\n"));
      return;
    }
    const colon = text.indexOf(":");
    const field = colon < 0 ? text : text.slice(0, colon);
    if (field !== "data") return;
    let value = colon < 0 ? "" : text.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    data.push(value);
  }

  return {
    push(text) {
      if (afterCr && text.startsWith("\n")) text = text.slice(1);
      if (text !== "") afterCr = false;
      const ends = /\r\n|\n|\r/g;
      let from = 0;
      for (let m = ends.exec(text); m; m = ends.exec(text)) {
        const whole = rest + text.slice(from, m.index);
        rest = "";
        from = ends.lastIndex;
        afterCr = m[0] === "\r" && from === text.length;
        size += whole.length + 1;
        if (size > SSE_EVENT_MAX)
          throw new Error("an event of the stream is longer than " + SSE_EVENT_MAX + " letters");
        line(whole);
      }
      rest += text.slice(from);
      if (size + rest.length > SSE_EVENT_MAX)
        throw new Error("an event of the stream is longer than " + SSE_EVENT_MAX + " letters");
    },
  };
}

// What the page uses of one event of /v1/chat/completions or /v1/completions. Anything of an
// unexpected type is as if it were not there.
function chatEvent(data) {
  let x;
  try {
    x = JSON.parse(data);
  } catch {
    throw new Error("the server sent an event that is not JSON");
  }
  const isObject = (v) => typeof v === "object" && v !== null;
  const text = (v) => (typeof v === "string" ? v : "");
  if (!isObject(x)) throw new Error("the server sent an event that is not an object");
  if (isObject(x.error))
    throw new Error(text(x.error.message) || "the server failed and did not say why");
  const choice = Array.isArray(x.choices) && isObject(x.choices[0]) ? x.choices[0] : {};
  const delta = isObject(choice.delta) ? choice.delta : {};
  return {
    text: text(delta.content) || text(choice.text),
    thought: text(delta.reasoning_content),
    end: text(choice.finish_reason),
    usage: isObject(x.usage) ? x.usage : null,
  };
}
