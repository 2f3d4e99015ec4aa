// main.js - puts the parts together when the page has loaded.

function main() {
  chat.store = talkStoreHere();
  keyLoad();
  byId("app").hidden = false;
  themeSetUp();
  dialogsSetUp();
  chatSetUp();
  composerSetUp();
  talkListSetUp();
  settingsSetUp();
  const tabs = tabsSetUp({chat: {}, state: stateTab(), model: modelTabSetUp()});
  keysSetUp(tabs);
  // the newest conversation is open, unless there is none
  chatOpen(chat.store.list()[0] || talkNew());
  modelsLoad();
  if (!keysAreTouch()) byId("input").focus();
}

main();
