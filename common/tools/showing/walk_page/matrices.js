// Rows of the matrices in global memory.

function makeMatrices(side) {
  side.strips = new Map();
  for (const tensor of side.walk.tensors) {
    const figure = element(side.part("matrices"), "figure", undefined, { class: "matrix" });
    const picture = svg(figure, "svg", { viewBox: `0 0 10 ${tensor.rows}`, preserveAspectRatio: "none", role: "img" });
    element(figure, "figcaption", tensor.name);
    side.strips.set(tensor.name, picture);
  }
  side.part("read-there").hidden = !side.walk.launches.some((launch) => launch.places.length);
  side.part("workspace-note").hidden = !side.strips.has("workspace");
}

function drawMatrices(side) {
  const words = [];
  const before = side.steps().slice(0, side.step), step = side.steps()[side.step];
  for (const tensor of side.walk.tensors) {
    const picture = side.strips.get(tensor.name);
    picture.replaceChildren();
    const moved = (of, move) => of[move]?.[tensor.name] ?? [];
    const band = (ranges, kind) => {
      for (const [first, last] of ranges) svg(picture, "rect", { class: kind, x: 0, y: first, width: 10, height: last - first + 1 });
    };
    for (const earlier of before) for (const move of ["read", "used", "landed", "written"]) band(moved(earlier, move), "before");
    const away = onTheirWay(side, tensor.name);
    band(away, "started");
    for (const [first, last] of away) svg(picture, "line", { class: "head", x1: 0, x2: 10, y1: first, y2: last + 1 });
    for (const move of ["landed", "read", "used", "written"]) band(moved(step, move), move === "used" ? "read" : move);
    const length = lengthOf(side, tensor.name);
    for (let row = length; length && row < tensor.rows; row += length) svg(picture, "line", { class: "head", x1: 0, x2: 10, y1: row, y2: row });
    const now = Object.keys(verbs).filter((move) => moved(step, move).length)
      .map((move) => `${verbs[move]} ${rangeWords(side, tensor.name, moved(step, move))}`);
    picture.setAttribute("aria-label", `${tensor.name}, ${several(tensor.rows, "row")}: ${now.length ? list(now) : "untouched in this step"}`);
    if (now.length) words.push(`${tensor.name}: ${list(now)}`);
  }
  side.part("matrices-words").textContent = words.length ? `${words.join("; ")}.` : "No row of any matrix is touched in this step.";
}

// Copies that have been started and have not landed.
function onTheirWay(side, name) {
  const away = new Set();
  const each = (ranges, does) => (ranges ?? []).forEach(([first, last]) => { for (let row = first; row <= last; row++) does(row); });
  for (const step of side.stepsSoFar()) {
    each(step.started?.[name], (row) => away.add(row));
    each(step.landed?.[name], (row) => away.delete(row));
  }
  const ranges = [];
  for (const row of [...away].sort((a, b) => a - b))
    if (ranges.length && ranges.at(-1)[1] === row - 1) ranges.at(-1)[1] = row;
    else ranges.push([row, row]);
  return ranges;
}
