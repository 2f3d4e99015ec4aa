// theme.js - light, dark, or as the system has it.

// clang-format off
const THEMES = [
  { name: "", sign: "◐", label: "Colours: as the system has them" },
  { name: "light", sign: "○", label: "Colours: light" },
  { name: "dark", sign: "●", label: "Colours: dark" },
];
// clang-format on
const THEME_PLACE = "weft.theme";

function themeSetUp() {
  let at = 0;
  try {
    at = Math.max(0, THEMES.findIndex((t) => t.name === localStorage.getItem(THEME_PLACE)));
  } catch {
    at = 0;
  }
  function draw() {
    const {name, sign, label} = THEMES[at];
    if (name)
      document.documentElement.dataset.theme = name;
    else
      delete document.documentElement.dataset.theme;
    nodeSet(byId("theme"), {title: label, "aria-label": label});
    byId("theme").textContent = sign;
  }
  byId("theme").addEventListener("click", () => {
    at = (at + 1) % THEMES.length;
    try {
      localStorage.setItem(THEME_PLACE, THEMES[at].name);
    } catch {
      // then it lasts as long as the page
    }
    draw();
  });
  draw();
}
