// Elements and shapes.

function svg(parent, tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function element(parent, tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.append(made);
  return made;
}

function table(parent, caption, heads) {
  const made = element(element(parent, "div", undefined, { class: "scroll", tabindex: 0, role: "group", "aria-label": caption }), "table");
  element(made, "caption", caption);
  const line = element(element(made, "thead"), "tr");
  for (const head of heads) element(line, "th", head, { scope: "col" });
  return element(made, "tbody");
}

// From pale to full blue with black or white digits: from 3/4 on white ones are easier to read.
function paint(place, part) {
  const mix = (a, b) => Math.round(a + (b - a) * part);
  place.style.background = `rgb(${mix(222, 0)}, ${mix(235, 86)}, ${mix(247, 140)})`;
  place.style.color = part > 0.75 ? "#ffffff" : "#000000";
}

// Bars around a line of zeros; with `exact`, what they should be as a mark on each.
function bars(parent, values, words, exact) {
  const finite = (x) => (Number.isFinite(x) ? x : 0);
  const most = Math.max(...[...values, ...(exact ?? [])].map((x) => Math.abs(finite(x))), 1e-30);
  const picture = svg(parent, "svg", { class: "bars", viewBox: `0 -1.05 ${values.length} 2.1`, preserveAspectRatio: "none",
                                       role: "img", "aria-label": words });
  svg(picture, "line", { class: "axis", x1: 0, x2: values.length, y1: 0, y2: 0 });
  values.forEach((value, i) => {
    const x = finite(value);
    svg(picture, "rect", { class: x < 0 ? "partly" : "whole", x: i, width: 0.8, y: Math.min(0, -x / most), height: Math.abs(x) / most });
    if (exact) svg(picture, "line", { class: "exact", x1: i, x2: i + 0.8, y1: -finite(exact[i]) / most, y2: -finite(exact[i]) / most });
  });
}
