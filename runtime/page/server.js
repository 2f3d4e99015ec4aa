// server.js - what the page asks of the server: the routes of this folder's README, and how
// failures are told.

const ASK_MS_MAX = 15000; // for anything but a chat, which lasts as long as it lasts

const server = {
  key: ""
};

class ServerError extends Error {
  constructor(message, status, waitSeconds) {
    super(message);
    this.status = status; // 0: no answer at all
    this.waitSeconds = waitSeconds;
  }
}

async function serverFailure(response) {
  let message = "";
  try {
    const body = JSON.parse(await response.text());
    if (typeof body.error.message === "string") message = body.error.message;
  } catch {
    // not OpenAI's form; the status says what there is to say
  }
  if (!message) message = "the server answered " + response.status + " " + response.statusText;
  const wait = Number(response.headers.get("Retry-After"));
  if ((response.status === 429 || response.status === 503) && wait > 0)
    message += "; try again in " + wait + " s";
  return new ServerError(message, response.status, wait > 0 ? wait : 0);
}

async function serverAsk(path, options) {
  const headers = {Accept: "application/json", ...options.headers};
  if (server.key) headers.Authorization = "Bearer " + server.key;
  let response;
  try {
    response = await fetch(
      path, {...options, headers, credentials: "omit", cache: "no-store", redirect: "error"});
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new ServerError(
      e.name === "TimeoutError" ? "the server did not answer in time" :
                                  "the server does not answer",
      0, 0);
  }
  if (!response.ok) throw await serverFailure(response);
  return response;
}

async function serverJson(path) {
  const response = await serverAsk(path, {signal: AbortSignal.timeout(ASK_MS_MAX)});
  try {
    return await response.json();
  } catch {
    throw new ServerError(path + " is not JSON", response.status, 0);
  }
}

async function serverBlob(path, type) {
  const response =
    await serverAsk(path, {signal: AbortSignal.timeout(ASK_MS_MAX), headers: {Accept: type}});
  return new Blob([await response.arrayBuffer()], {type});
}

// [{id, chat}]; chat: whether it has a template for messages, or only continues a text.
async function serverModels() {
  const list = await serverJson("/v1/models");
  const rows = list && Array.isArray(list.data) ? list.data : [];
  return rows.filter((x) => x && typeof x.id === "string" && x.id !== "")
    .map((x) => ({id: x.id, chat: x.chat !== false}));
}

// ask: {path, body}. take: called with each event. Ends when the stream does; a stream without its
// end is a failure.
async function serverStream(ask, signal, take) {
  const response = await serverAsk(ask.path, {
    method: "POST",
    signal,
    headers: {"Content-Type": "application/json", Accept: "text/event-stream"},
    body: JSON.stringify(ask.body),
  });
  const letters = new TextDecoder();
  const reader = response.body.getReader();
  let done = false;
  const parser = sseParser((data) => {
    if (data === "[DONE]")
      done = true;
    else if (!done)
      take(chatEvent(data));
  });
  const read = () => reader.read().catch((e) => {
    throw e.name === "AbortError" ? e : new ServerError("the connection broke", 0, 0);
  });
  try {
    while (!done) {
      const piece = await read();
      if (piece.done) break;
      parser.push(letters.decode(piece.value, {stream: true}));
    }
  } finally {
    reader.cancel().catch(() => {}); // frees the connection where the stream is not at its end
  }
  if (!done) throw new ServerError("the stream ended too early", 0, 0);
}
