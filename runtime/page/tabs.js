// tabs.js - which of the three views is shown. Only the one in sight asks the server for anything.

function tabsSetUp(views) {
  const names = Object.keys(views); // "chat", "state", "model"
  let now = "";

  function show(name) {
    if (name === now) return;
    if (now && views[now].stop) views[now].stop();
    now = name;
    for (const other of names) {
      const tab = byId("tab-" + other);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      nodeShow(byId("view-" + other), other === name);
    }
    document.body.dataset.view = name;
    if (views[name].start) views[name].start();
  }

  names.forEach((name, i) => {
    byId("tab-" + name).addEventListener("click", () => show(name));
    byId("tab-" + name).addEventListener("keydown", (e) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[e.key];
      if (!step) return;
      const next = names[(i + step + names.length) % names.length];
      show(next);
      byId("tab-" + next).focus();
    });
  });
  show(names[0]);
  return {show, names, now: () => now};
}
