"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const spoken = document.getElementById("spoken");
  const plots = {};

  function colours(isDark) {
    const ink = isDark ? "#e8edf0" : "#1b2329";
    return {
      "font.color": ink,
      "hoverlabel.bgcolor": isDark ? "#2a343c" : "#ffffff",
      "hoverlabel.font.color": ink,
      "hoverlabel.bordercolor": isDark ? "#aab6bf" : "#4d5963",
    };
  }

  function recolour(isDark) {
    return Promise.all(Object.values(plots).map((plot) => Plotly.relayout(plot, colours(isDark))));
  }

  function words(text) {
    const holder = document.createElement("template");
    holder.innerHTML = String(text).replace(/<br>/g, ". ");
    return holder.content.textContent;
  }

  // Points in the order in which the arrow keys visit them.
  function stops(plot) {
    const found = [];
    plot.data.forEach((trace, curve) => {
      if (trace.hoverinfo === "skip") return;
      const told = trace.hovertext || trace.text;
      if (trace.type === "heatmap") {
        told.forEach((row, y) => row.forEach((text, x) => found.push([{ curveNumber: curve, xval: x, yval: y }, text])));
        return;
      }
      Array.from(trace.x || []).forEach((x, k) => {
        const text = Array.isArray(told) ? told[k] : `${trace.name || ""} ${x}, ${trace.y[k]}`;
        if (x !== null && text) found.push([{ curveNumber: curve, pointNumber: k }, text]);
      });
    });
    return found;
  }

  function walk(plot) {
    let at = -1;
    let points = null;
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") Plotly.Fx.unhover(plot);
      if (!step) return;
      event.preventDefault();
      points = points || stops(plot);
      if (!points.length) return;
      at = (at + step + points.length) % points.length;
      const [point, text] = points[at];
      const trace = plot.data[point.curveNumber];
      const subplot = `${(trace.xaxis || "x")}${(trace.yaxis || "y")}`;
      Plotly.Fx.hover(plot, [point], subplot);
      spoken.textContent = words(text);
    });
    plot.addEventListener("blur", () => Plotly.Fx.unhover(plot));
  }

  function draw(name) {
    if (plots[name]) return;
    const plot = document.getElementById(`plot-${name}`);
    const { data, layout } = figures[name];
    const ink = colours(dark.matches);
    layout.font = { ...layout.font, color: ink["font.color"] };
    layout.hoverlabel = {
      ...layout.hoverlabel,
      bgcolor: ink["hoverlabel.bgcolor"],
      bordercolor: ink["hoverlabel.bordercolor"],
      font: { color: ink["hoverlabel.font.color"] },
    };
    plots[name] = plot;
    Plotly.newPlot(plot, data, layout, { displayModeBar: false, responsive: true });
    walk(plot);
  }

  // One after the other, so that the page can be read and scrolled meanwhile.
  function drawAll(names) {
    if (!names.length) {
      document.documentElement.dataset.drawn = "yes";
      return;
    }
    draw(names[0]);
    setTimeout(() => drawAll(names.slice(1)), 0);
  }

  for (const button of document.querySelectorAll("button[data-of]")) {
    button.addEventListener("click", () => {
      const plot = plots[button.dataset.of];
      const size = { width: plot.clientWidth, height: plot.clientHeight };
      Plotly.downloadImage(plot, { format: "svg", filename: button.dataset.of, ...size });
    });
  }
  dark.addEventListener("change", () => recolour(dark.matches));
  window.addEventListener("beforeprint", () => {
    Object.keys(figures).forEach(draw);
    recolour(false);
  });
  window.addEventListener("afterprint", () => recolour(dark.matches));
  requestAnimationFrame(() => drawAll(Object.keys(figures)));
})();
