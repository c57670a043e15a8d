// Who waits for whom: where warps meet at mbarriers, each party of them has steps of its own.

const capitals = ([first, last]) =>
  first === last ? `Warp ${first}` : first % 4 === 0 && last === first + 3 ? `Warpgroup ${first / 4}` : `Group of warps ${first}–${last}`;
const partyName = (by) => (by ? capitals(by) : "The block");
const gateName = (step, gate) => (gate < 0 ? `barrier ${-gate}` : step.gates[gate]);

// What a step is for, as the picture has it: [class, pattern, words].
function purpose(step) {
  if (step.work[4]) return ["whole", null, "multiplies"];
  if (step.fills) return ["started", "stripes", "starts copies"];
  if (step.written) return ["written", "crosses", "writes results"];
  return ["before", null, "does neither"];
}

const waitsFor = (step) => (step.after ?? []).flatMap(({ steps }) => steps ?? []);

function drawParties(side) {
  const steps = side.steps(), now = steps[side.step];
  const section = side.part("parties-section");
  section.hidden = !steps.some((step) => step.by);
  if (section.hidden) return;
  const names = [...new Set(steps.map((step) => partyName(step.by)))];
  const first = (name) => steps.find((step) => partyName(step.by) === name).by?.[0] ?? -1;
  names.sort((a, b) => first(a) - first(b));
  const wide = 34, high = 30, height = names.length * high + 4;
  const x = (step) => step.at * wide, y = (step) => names.indexOf(partyName(step.by)) * high + 4;
  const place = side.part("parties"), scrolled = place.scrollLeft;
  place.replaceChildren();
  const width = (Math.max(...steps.map((step) => step.at)) + 1) * wide;
  const picture = svg(place, "svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": partyWords(side) });
  const labels = side.part("parties-names");
  labels.replaceChildren();
  for (const name of names) element(labels, "li", name);
  steps.forEach((step, i) => {
    const [kind, pattern, words] = purpose(step);
    const box = { x: x(step) + 1, y: y(step), width: wide - 4, height: high - 8 };
    const group = svg(picture, "g", {});
    svg(group, "rect", { class: kind, ...box });
    if (pattern) svg(group, "rect", { fill: `url(#${pattern})`, ...box });
    if (i > side.step) svg(group, "rect", { class: "later", ...box });
    svg(group, "title", {}, `Step ${i + 1}: ${partyName(step.by)} ${words}`);
  });
  const middle = (step) => y(step) + (high - 8) / 2;
  const line = (from, to, kind) => svg(picture, "line", { class: kind, x1: x(from) + wide - 4, y1: middle(from), x2: x(to) + 1, y2: middle(to) });
  for (const i of new Set(waitsFor(now))) line(steps[i], now, "waited");
  for (const step of steps) if (waitsFor(step).includes(side.step)) line(now, step, "awaited");
  svg(picture, "rect", { class: "now", x: x(now) + 1, y: y(now), width: wide - 4, height: high - 8 });
  place.scrollLeft = scrolled;
  if (x(now) < place.scrollLeft || x(now) + wide > place.scrollLeft + place.clientWidth) place.scrollLeft = x(now) - place.clientWidth / 2;
  side.part("parties-words").textContent = partyWords(side);
}

// For whom the party of this step has waited, and who waits for it.
function partyWords(side) {
  const steps = side.steps(), step = steps[side.step];
  const who = (numbers) => list([...new Set(numbers)].sort((a, b) => a - b).map((i) => `${partyName(steps[i].by).toLowerCase()} in step ${i + 1}`));
  const before = (step.after ?? []).map((each) =>
    `${gateName(step, each.on)} (${each.line})${each.steps?.length ? `, to which came ${who(each.steps)}` : ""}`);
  const after = [...steps.keys()].filter((i) => waitsFor(steps[i]).includes(side.step));
  return `${partyName(step.by)}, step ${side.step + 1}: ${before.length ? `it waited at ${before.join("; at ")}` : "it waited for nobody"}. ` +
    (after.length ? `Without this step could not begin: ${who(after)}.` : "Nobody waits for this step.");
}
