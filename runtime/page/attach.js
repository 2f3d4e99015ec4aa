// attach.js - text files that go with a message: read, checked, and put into its text.

const FILES_MAX = 8;
const FILE_MAX = 262144; // bytes; a context holds no more anyway

// {name, text} of bytes, or {fault}: they are no text.
function fileText(name, bytes) {
  if (bytes.length > FILE_MAX)
    return {
      fault: name + " has " + bytesText(bytes.length) + ", expected at most " + bytesText(FILE_MAX)
    };
  let text;
  try {
    text = new TextDecoder("utf-8", {fatal: true}).decode(bytes);
  } catch {
    return {fault: name + " is not text in UTF-8"};
  }
  if (text.includes("\0")) return {fault: name + " is not text: it has zero bytes"};
  return {name: name.slice(0, 200), text};
}

async function fileRead(file) {
  if (file.size > FILE_MAX)
    return {
      fault:
        file.name + " has " + bytesText(file.size) + ", expected at most " + bytesText(FILE_MAX)
    };
  try {
    return fileText(file.name, new Uint8Array(await file.arrayBuffer()));
  } catch {
    return {fault: file.name + " cannot be read"};
  }
}

// A fence longer than any in the text, so that the file ends where it ends.
function fenceFor(text) {
  let n = 3;
  for (const m of text.matchAll(/`{3,}/g)) n = Math.max(n, m[0].length + 1);
  return "`".repeat(n);
}

function filesInto(text, files) {
  const parts = files.map((f) => {
    const fence = fenceFor(f.text);
    return f.name + ":\n" + fence + "\n" + f.text + (f.text.endsWith("\n") ? "" : "\n") + fence +
      "\n";
  });
  return [...parts, text].join("\n");
}
