// answer.js - asks for an answer and takes it as it comes. One at a time in a conversation, as many
// conversations as one likes.

const answersRunning = new Map(); // id of a conversation -> {talk, stop}: the conversation as it
                                  // grows, and what stops it

// What is sent for an answer: the messages before the n-th. An answer that failed before it said
// anything is left out, and what the user said before and after it is one message: templates want
// the roles to take turns.
function chatAsk(talk, n) {
  const messages = talk.system.trim() ? [{role: "system", content: talk.system}] : [];
  for (const m of talk.messages.slice(0, n)) {
    const content = m.role === "user" ? filesInto(m.text, m.files) : versionShown(m).text;
    const last = messages[messages.length - 1];
    if (m.role === "assistant" && content === "") continue;
    if (last && last.role === m.role)
      last.content += "\n\n" + content;
    else
      messages.push({role: m.role, content});
  }
  const body = {
    model: talk.model,
    messages,
    stream: true,
    stream_options: {include_usage: true},
    ...talk.sampling
  };
  return {path: "/v1/chat/completions", body};
}

// The same for a model that knows no messages: all that was written is one text, which it
// continues.
function textAsk(talk, n) {
  const {messages, max_completion_tokens: most, ...rest} = chatAsk(talk, n).body;
  const body = {...rest, prompt: messages.map((m) => m.content).join("")};
  if (most !== undefined) body.max_tokens = most;
  return {path: "/v1/completions", body};
}

function usageOf(event, version, begun, first, now) {
  const n = (x) => (typeof x === "number" && isFinite(x) ? x : undefined);
  const details = event.usage.prompt_tokens_details || {};
  const tokens = n(event.usage.completion_tokens);
  version.usage = {
    prompt: n(event.usage.prompt_tokens),
    cached: n(details.cached_tokens),
    tokens,
    first_ms: first ? first - begun : undefined
  };
  if (tokens > 1 && first && now > first)
    version.usage.rate = ((tokens - 1) * 1000) / (now - first);
}

// Fills the version of `message` that is shown; chats: whether the model knows messages. changed()
// is called whenever there is more. Gives the status of the server's answer, 0 where there was
// none.
async function answerRun(talk, message, chats, changed) {
  const version = versionShown(message);
  const stop = new AbortController();
  const begun = performance.now();
  let first = 0;
  let last = 0; // when the last text came: the tokens per second are those of the answer, not of
                // what follows it
  answersRunning.set(talk.id, {talk, stop});
  changed();
  try {
    const n = talk.messages.indexOf(message);
    await serverStream(chats ? chatAsk(talk, n) : textAsk(talk, n), stop.signal, (event) => {
      if (event.text || event.thought) {
        last = performance.now();
        first = first || last;
      }
      version.text += event.text;
      version.thought += event.thought;
      if (event.end) version.end = event.end;
      if (event.usage) usageOf(event, version, begun, first, last);
      if (version.text.length + version.thought.length > TEXT_MAX)
        throw new Error("the answer is longer than the page can keep");
      changed();
    });
  } catch (e) {
    if (stop.signal.aborted)
      version.end = "stopped";
    else
      version.fault = e.message;
    return e instanceof ServerError ? e.status : 0;
  } finally {
    stop.abort(); // a fault of the page's own must not leave the server at work
    answersRunning.delete(talk.id);
    changed();
  }
  return 200;
}

function answerStop(talk) {
  const running = answersRunning.get(talk.id);
  if (running) running.stop.abort();
  return running !== undefined;
}
