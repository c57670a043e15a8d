// Draws the plots of a page, in the colours of the reader's theme, over the pictures that paper and readers without scripts get.

function isDark() {
  const theme = document.body.dataset.theme;
  return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

function laidOut(figure, width) {
  const style = getComputedStyle(document.body);
  const ink = style.getPropertyValue("--color-foreground-primary").trim();
  const faint = style.getPropertyValue("--color-background-border").trim();
  const narrow = width < 640;
  const columns = narrow || figure.panels === 1 ? 1 : 2;
  const rows = Math.ceil(figure.panels / columns);
  const names = figure.data.filter((trace) => trace.showlegend).length;
  const height = figure.bars ? 85 + 26 * figure.bars : (narrow ? 90 + 22 * names : 170) + 310 * rows;
  const layout = {
    ...figure.layout, height, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
    font: {color: ink, family: "inherit", size: narrow ? 11 : 13}, margin: {l: narrow ? 50 : 70, r: 10, t: 25, b: 50},
    legend: {orientation: "h", yref: "container", y: 0, yanchor: "bottom"},
    grid: {rows, columns, pattern: "independent", xgap: 0.12, ygap: 0.25},
    hoverlabel: {bgcolor: style.getPropertyValue("--color-background-secondary").trim(), font: {color: ink}, align: "left"},
  };
  for (const name of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) {
    const title = {...layout[name].title, standoff: 6, font: {size: narrow ? 11 : 13}};
    layout[name] = {...layout[name], title, gridcolor: faint, linecolor: ink, zeroline: false, automargin: true};
  }
  return layout;
}

function coloured(trace) {
  const color = trace.meta[isDark() ? "dark" : "light"];
  return {...trace, line: {...trace.line, color}, marker: {...trace.marker, color}};
}

for (const plot of document.querySelectorAll(".plot")) {
  const figure = JSON.parse(plot.querySelector("script").textContent);
  const canvas = document.createElement("div");
  canvas.className = "canvas";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", plot.querySelector("img").alt);
  const caption = document.createElement("p");
  caption.className = "caption";
  caption.append(Object.assign(document.createElement("strong"), {textContent: figure.title}), ` ${figure.note}`);
  plot.append(caption, canvas);
  plot.classList.add("drawn");
  const draw = () => Plotly.react(canvas, figure.data.map(coloured), laidOut(figure, plot.clientWidth), {displayModeBar: false, responsive: true});
  draw();
  new MutationObserver(draw).observe(document.body, {attributeFilter: ["data-theme"]});
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  matchMedia("(max-width: 640px)").addEventListener("change", draw);
}
