// composer.js - the field where messages are written, and the files that go with one.

const composer = {
  files: []
};

// On a screen without a keyboard, Enter is for new lines.
function keysAreTouch() {
  return matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;
}

function composerFiles() {
  nodePut(
    byId("files"),
    composer.files.map(
      (f) => node(
        "li", null, f.name,
        buttonNode(
          "Remove " + f.name, {
            class: "quiet",
            onclick: () => {
              composer.files = composer.files.filter((x) => x !== f);
              composerFiles();
              byId("input").focus();
            }
          },
          "×"))));
}

async function composerAttach(list) {
  for (const file of list) {
    if (composer.files.length >= FILES_MAX) {
      noticeShow("At most " + FILES_MAX + " files go with a message.");
      break;
    }
    const got = await fileRead(file);
    if (got.fault)
      noticeShow(got.fault + ".");
    else
      composer.files.push(got);
  }
  composerFiles();
}

// As high as its text, within reason.
function composerFit() {
  const field = byId("input");
  field.style.height = "auto";
  field.style.height = Math.min(field.scrollHeight + 2, innerHeight * 0.4) + "px";
}

function composerSend() {
  const field = byId("input");
  if (!chatSend(field.value, composer.files)) return;
  field.value = "";
  composer.files = [];
  composerFiles();
  composerFit();
}

function composerKey(e) {
  if (
    e.key === "Enter" && !e.shiftKey && !e.isComposing &&
    (e.ctrlKey || e.metaKey || !keysAreTouch())) {
    e.preventDefault();
    composerSend();
  } else if (
    e.key === "ArrowUp" && byId("input").value === "" && !answersRunning.has(chat.talk.id)) {
    e.preventDefault();
    chatEditLast();
  }
}

function composerSetUp() {
  const form = byId("composer");
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    composerSend();
  });
  byId("input").addEventListener("keydown", composerKey);
  byId("input").addEventListener("input", composerFit);
  byId("input").addEventListener("paste", (e) => {
    if (e.clipboardData.files.length === 0) return;
    e.preventDefault();
    composerAttach(Array.from(e.clipboardData.files));
  });
  byId("attach").addEventListener("click", () => byId("file-input").click());
  byId("file-input").addEventListener("change", async (e) => {
    const list = Array.from(e.target.files);
    e.target.value = ""; // the same file again is a change, too
    await composerAttach(list);
    byId("input").focus();
  });
  const pane = byId("view-chat");
  pane.addEventListener("dragover", (e) => e.preventDefault());
  pane.addEventListener("drop", (e) => {
    e.preventDefault();
    composerAttach(Array.from(e.dataTransfer.files));
  });
}
