// settings_form.js - the model of a conversation, its system prompt and its sampling, as fields.

const pageModels = {
  list: []
}; // of serverModels

function modelChats(id) {
  const row = pageModels.list.find((m) => m.id === id);
  return !row || row.chat;
}

function modelsDraw() {
  const pick = byId("model");
  const {talk} = chat;
  const ids = pageModels.list.map((m) => m.id);
  if (!talk.model && ids.length) talk.model = ids[0];
  if (talk.model && !ids.includes(talk.model))
    ids.unshift(talk.model); // it was there once; the server says what to do
  nodePut(pick, ids.map((id) => node("option", {value: id}, id)));
  pick.value = talk.model;
  nodeShow(pick, ids.length > 0);
}

async function modelsLoad() {
  try {
    pageModels.list = await withKey(serverModels);
    // a new conversation does not begin with a model that is gone
    if (!pageModels.list.some((m) => m.id === chat.talk.model) && chat.talk.messages.length === 0)
      chat.talk.model = "";
    modelsDraw();
    if (chat.talk.messages.length === 0) chatDraw();
  } catch (e) {
    noticeShow("The list of models is not known: " + e.message + ".");
  }
}

function settingField(row, talk) {
  const id = "set-" + row.name;
  const field = node(row.list ? "textarea" : "input", {
    id,
    rows: row.list ? 2 : null,
    type: row.list ? null : "text",
    inputmode: row.list ? null : "decimal",
    placeholder: "as the server",
    "aria-describedby": id + "-help",
    autocomplete: "off"
  });
  const help = node("span", {id: id + "-help", class: "hint"}, row.help);
  field.value = settingText(row, talk.sampling[row.name]);
  field.addEventListener("input", () => {
    const got = settingRead(row, field.value);
    field.setAttribute("aria-invalid", String(got.fault !== undefined));
    help.textContent = got.fault || row.help;
    if (got.fault) return;
    if (got.value === undefined)
      delete talk.sampling[row.name];
    else
      talk.sampling[row.name] = got.value;
    settingsKeep(talk);
  });
  return node("div", {class: "field"}, node("label", { for: id
              }, row.label), field, help);
}

// Settings alone make no conversation: they are kept with its first message.
function settingsKeep(talk) {
  if (talk.messages.length) chatSave(talk);
}

function settingsDraw() {
  const {talk} = chat;
  const system =
    node("textarea", {id: "set-system", rows: 3, placeholder: "How the model should behave"});
  system.value = talk.system;
  system.addEventListener("input", () => {
    talk.system = system.value.slice(0, TEXT_MAX);
    settingsKeep(talk);
  });
  const reset = buttonNode("As the server has them", {
    class: "quiet",
    onclick: () => {
      talk.sampling = {};
      settingsKeep(talk);
      settingsDraw();
    }
  });
  nodePut(
    byId("settings"),
    node(
      "div", {class: "field wide"},
      node(
        "label",
        { for: "set-system"
        },
        "System prompt"),
      system),
    ...SAMPLING.map((row) => settingField(row, talk)),
    node("div", {class: "dialog-row wide"}, reset, buttonNode("Key…", {
           class: "quiet",
           onclick: async () => {
             if (await keyAsk()) modelsLoad();
           }
         })));
}

function settingsToggle(shown) {
  nodeShow(byId("settings"), shown);
  byId("settings-open").setAttribute("aria-expanded", String(shown));
  if (shown) byId("set-system").focus();
}

function settingsSetUp() {
  byId("settings-open").addEventListener("click", () => settingsToggle(byId("settings").hidden));
  byId("settings").addEventListener("submit", (e) => e.preventDefault());
  byId("model").addEventListener("change", (e) => {
    chat.talk.model = e.target.value;
    settingsKeep(chat.talk);
    if (chat.talk.messages.length === 0) chatDraw();
  });
}
