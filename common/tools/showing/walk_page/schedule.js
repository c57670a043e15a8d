// A model of when the blocks run: they start in their order, each on the multiprocessor that is free first.

function schedule(lengths, processors) {
  const free = new Array(processors).fill(0);
  return lengths.map((length) => {
    const on = free.indexOf(Math.min(...free));
    const from = free[on];
    free[on] += length;
    return { on, from, length };
  });
}

// Of a block: steps that come one after the other.
const chainOf = (block) => Math.max(...block.steps.map((step) => step.at)) + 1;
const planOf = (side) => schedule(side.blocks().map(chainOf), Number(side.part("processors").value));
const endOf = (plan) => Math.max(...plan.map(({ from, length }) => from + length));

// Of all sides, on one scale of time.
function drawSchedules(sides) {
  const most = Math.max(...sides.map((side) => endOf(planOf(side))));
  for (const side of sides) drawSchedule(side, planOf(side), 600 / most);
}

function drawSchedule(side, plan, scale) {
  const place = side.part("schedule");
  place.replaceChildren();
  const processors = Number(side.part("processors").value);
  const lengths = plan.map(({ length }) => length);
  const end = endOf(plan);
  const busy = lengths.reduce((sum, length) => sum + length, 0) / (processors * end);
  const words = `${several(lengths.length, "block")} on ${several(processors, "multiprocessor")} take ` +
    `${several(end, "step")}; the multiprocessors are busy ${Math.round(100 * busy)}% of that time.`;
  const height = 22;
  const picture = svg(place, "svg", { class: "gantt", viewBox: `0 0 620 ${processors * height + 4}`, role: "img", "aria-label": words });
  const most = Math.max(...side.blocks().map((block) => block.tiles.length), 1);
  plan.forEach(({ on, from, length }, i) => {
    const block = side.blocks()[i];
    const bar = svg(picture, "rect", { class: i === side.blockAt ? "bar chosen-bar" : "bar", x: 10 + from * scale, y: on * height + 3,
                                       width: length * scale, height: height - 4 });
    bar.style.fillOpacity = 0.25 + 0.75 * block.tiles.length / most;
    svg(bar, "title", {}, `${capital(blockWords(side, block))}; starts at ${from}`);
  });
  element(place, "p", `${words} This is a model: a block is as long as its longest chain of steps, and a multiprocessor holds one at a time.`, { class: "note" });
}
