// settings.js - what a conversation asks of the sampler: the table of fields, and a text that was
// typed into one checked. A field that is empty is not sent, so that the server's own value holds.

const STOPS_MAX = 4;
const SEED_MAX = Number.MAX_SAFE_INTEGER;

// clang-format off
const SAMPLING = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, help: "0 always takes the likeliest token" },
  { name: "top_p", label: "Top p", min: 0, max: 1, help: "the likeliest tokens that together have this probability" },
  { name: "top_k", label: "Top k", min: 0, max: 1000, whole: true, help: "at most so many tokens; 0: all" },
  { name: "min_p", label: "Min p", min: 0, max: 1, help: "tokens at least this likely, relative to the best" },
  { name: "max_completion_tokens", label: "Tokens at most", min: 1, max: 1000000, whole: true, help: "an answer is cut there" },
  { name: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2, help: "for each time a token was there" },
  { name: "presence_penalty", label: "Presence penalty", min: -2, max: 2, help: "for a token that was there at all" },
  { name: "seed", label: "Seed", min: 0, max: SEED_MAX, whole: true, help: "the same seed gives the same answer" },
  { name: "stop", label: "Stop at", list: true, help: "at most 4 texts, one a line" },
];
// clang-format on

// {value}, undefined where the field is empty, or {fault}: what is wrong with it.
function settingRead(row, text) {
  if (row.list) {
    const list = text.split("\n").filter((x) => x !== "");
    return list.length > STOPS_MAX ?
      {fault: list.length + " texts, expected at most " + STOPS_MAX} :
      {value: list.length ? list : undefined};
  }
  const plain = text.trim();
  if (plain === "") return {value: undefined};
  const x = Number(plain);
  if (!isFinite(x)) return {fault: "not a number"};
  if (row.whole && !Number.isSafeInteger(x)) return {fault: "expected a whole number"};
  if (x < row.min || x > row.max) return {fault: "expected " + row.min + " to " + row.max};
  return {value: x};
}

function settingText(row, value) {
  return value === undefined ? "" : row.list ? value.join("\n") : String(value);
}

// The settings among the fields of x, which may come from anywhere.
function samplingCheck(x) {
  const out = {};
  if (typeof x !== "object" || x === null) return out;
  for (const row of SAMPLING) {
    const value = x[row.name];
    const isList = Array.isArray(value) && value.every((v) => typeof v === "string");
    if (row.list ? !isList : typeof value !== "number") continue;
    const got = settingRead(row, settingText(row, value));
    if (got.value !== undefined) out[row.name] = got.value;
  }
  return out;
}
