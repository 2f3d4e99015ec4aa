// settings_form.js - the model of a conversation, its system prompt and its sampling, as fields.

const pageModels = { list: [] };

function modelsDraw() {
  const pick = byId("model");
  const { talk } = chat;
  if (!talk.model && pageModels.list.length) talk.model = pageModels.list[0];
  const list = pageModels.list.includes(talk.model) || !talk.model ? pageModels.list : [talk.model, ...pageModels.list];
  nodePut(pick, list.map((id) => node("option", { value: id, selected: id === talk.model }, id)));
  pick.value = talk.model;
  nodeShow(pick, list.length > 0);
}

async function modelsLoad() {
  try {
    pageModels.list = await withKey(serverModels);
    // a conversation of a model that is gone goes on with one that is there
    if (!pageModels.list.includes(chat.talk.model) && chat.talk.messages.length === 0) chat.talk.model = pageModels.list[0] || "";
    modelsDraw();
  } catch (e) {
    noticeShow("The list of models is not known: " + e.message + ".");
  }
}

function settingField(row, talk) {
  const id = "set-" + row.name;
  const field = node(row.list ? "textarea" : "input", {
    id, rows: row.list ? 2 : null, type: row.list ? null : "text", inputmode: row.list ? null : "decimal", placeholder: "as the server",
    "aria-describedby": id + "-help", autocomplete: "off" });
  const help = node("span", { id: id + "-help", class: "hint" }, row.help);
  field.value = settingText(row, talk.sampling[row.name]);
  field.addEventListener("input", () => {
    const got = settingRead(row, field.value);
    field.setAttribute("aria-invalid", String(got.fault !== undefined));
    help.textContent = got.fault || row.help;
    if (got.fault) return;
    if (got.value === undefined) delete talk.sampling[row.name];
    else talk.sampling[row.name] = got.value;
    settingsKeep(talk);
  });
  return node("div", { class: "field" }, node("label", { for: id }, row.label), field, help);
}

// Settings alone make no conversation: they are kept with its first message.
function settingsKeep(talk) {
  if (talk.messages.length) chatSave(talk);
}

function settingsDraw() {
  const { talk } = chat;
  const system = node("textarea", { id: "set-system", rows: 3, placeholder: "How the model should behave" });
  system.value = talk.system;
  system.addEventListener("input", () => {
    talk.system = system.value.slice(0, TEXT_MAX);
    settingsKeep(talk);
  });
  const reset = buttonNode("As the server has them", { class: "quiet", onclick: () => {
    talk.sampling = {};
    settingsKeep(talk);
    settingsDraw();
  } });
  nodePut(byId("settings"), 
    node("div", { class: "field wide" }, node("label", { for: "set-system" }, "System prompt"), system),
    ...SAMPLING.map((row) => settingField(row, talk)),
    node("div", { class: "dialog-row wide" }, reset, buttonNode("Key…", { class: "quiet", onclick: async () => {
      if (await keyAsk()) modelsLoad();
    } })));
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
  });
}
