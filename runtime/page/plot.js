// plot.js - small plots of what changes: the last minutes of a few series, as SVG. The numbers are
// there as text, too.

const PLOT_POINTS = 120;
const PLOT_WIDTH = 240, PLOT_HEIGHT = 56;

// A round number that is not below x: 1, 2 or 5 times a power of ten.
function plotTop(x) {
  if (!(x > 0)) return 1;
  const power = Math.pow(10, Math.floor(Math.log10(x)));
  return [1, 2, 5, 10].map((n) => n * power).find((top) => top >= x * 0.999999);
}

// The points of a line: the newest at the right. A value that is not known (null) interrupts it.
function plotPath(values, top) {
  const step = PLOT_WIDTH / (PLOT_POINTS - 1);
  const first = PLOT_WIDTH - step * (values.length - 1);
  let path = "";
  let pen = false;
  values.forEach((v, i) => {
    if (v === null) {
      pen = false;
      return;
    }
    const y = PLOT_HEIGHT - (Math.min(v, top) / top) * (PLOT_HEIGHT - 2) - 1;
    path += (pen ? "L" : "M") + (first + i * step).toFixed(1) + " " + y.toFixed(1);
    pen = true;
  });
  return path;
}

// series: [{name, unit}], at most three. push takes a value for each, null where it is not known.
function plotView(title, series) {
  const kept = series.map(() => []);
  const lines = series.map((_, i) => svgNode("path", {class: "line-" + i, fill: "none", d: ""}));
  const topText = node("span", {class: "plot-top"});
  const now = series.map((s, i) => node("span", {class: "now-" + i}, s.name));
  const svg = svgNode(
    "svg", {
      viewBox: "0 0 " + PLOT_WIDTH + " " + PLOT_HEIGHT,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": title
    },
    svgNode("path", {class: "plot-base", d: "M0 " + (PLOT_HEIGHT - 0.5) + "H" + PLOT_WIDTH}),
    lines);
  const root = node(
    "figure", {class: "plot"}, node("figcaption", null, node("strong", null, title), now),
    node("div", {class: "plot-area"}, svg, topText));
  return {
    root,
    push(values) {
      let most = 0;
      kept.forEach((list, i) => {
        const v = values[i];
        list.push(typeof v === "number" && isFinite(v) ? v : null);
        if (list.length > PLOT_POINTS) list.shift();
        for (const x of list)
          if (x !== null && x > most) most = x;
      });
      const top = plotTop(most);
      kept.forEach((list, i) => {
        lines[i].setAttribute("d", plotPath(list, top));
        const v = list[list.length - 1];
        now[i].textContent = series[i].name + " " + (v === null ? "–" : numberText(v)) +
          (series[i].unit ? " " + series[i].unit : "");
      });
      topText.textContent = numberText(top);
    },
  };
}
