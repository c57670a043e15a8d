// The launch as a whole: blocks go to multiprocessors, the score matrices fill, and parts of dQ are added. When a block runs is a model:
// blocks start in their order, each on the multiprocessor that is free first, and take as long as their longest chain of steps.

function schedule(lengths, processors) {
  const free = new Array(processors).fill(0);
  return lengths.map((length) => {
    const on = free.indexOf(Math.min(...free));
    const from = free[on];
    free[on] += length;
    return { on, from, length };
  });
}

const chainOf = (block) => Math.max(...block.steps.map((step) => step.at)) + 1;
const planOf = (side) => schedule(side.blocks().map(chainOf), Number(side.part("processors").value));
const endOf = (plan) => Math.max(...plan.map(({ from, length }) => from + length));

// {tile, block, from, to} of all tiles: from when its rows are there until its party goes on to another one.
function timesOf(side, plan) {
  return side.blocks().flatMap((block, i) => block.tiles.map((tile, t) => {
    const by = (each) => String(block.steps[each.step].by);
    const next = block.tiles.find((other, o) => o > t && by(other) === by(tile));
    const at = (step) => plan[i].from + block.steps[step].at;
    return { tile, block: i, from: at(tile.step), to: next ? at(next.step) : plan[i].from + plan[i].length };
  }));
}

// Of each tile of queries: the parts of dQ that blocks add, in the order in which they did. [{queries, head, parts: [{block, at}]}]
function partsOfDq(side, plan) {
  const found = new Map();
  side.blocks().forEach((block, i) => {
    const steps = block.steps.map((step, s) => [step, s]).filter(([step]) => step.watched?.dQ);
    for (const [step] of steps)
      for (const tile of block.tiles) {
        const first = tile.head * side.problem.seq_q + tile.queries[0], last = tile.head * side.problem.seq_q + tile.queries[1];
        if (!step.watched.dQ.some(([row, count]) => row <= last && first < row + count)) continue;
        const key = `${tile.head} ${tile.queries[0]}`;
        const strip = found.get(key) ?? { head: tile.head, queries: tile.queries, parts: [] };
        if (!strip.parts.some((part) => part.block === i)) strip.parts.push({ block: i, at: plan[i].from + step.at + 1 });
        found.set(key, strip);
      }
  });
  return [...found.values()].sort((a, b) => a.head - b.head || a.queries[0] - b.queries[0]);
}

// One scale of time for all sides: `most` steps are as wide as the picture.
function drawLaunch(side, time, most) {
  const plan = planOf(side), times = timesOf(side, plan);
  drawLaunchMatrices(side, time, times);
  drawProcessors(side, time, plan, most);
  const parts = side.walk.direction === "backward" ? partsOfDq(side, plan) : [];
  side.part("dq-section").hidden = !parts.length;
  side.part("dq").replaceChildren();
  for (const strip of parts) {
    const item = element(side.part("dq"), "li");
    element(item, "span", `${side.problem.batch * side.problem.heads > 1 ? `${headName(side, strip.head)}, ` : ""}queries ${rows(...strip.queries)}: `);
    strip.parts.forEach(({ block, at }, i) => {
      if (i) item.append(" + ");
      element(item, "span", `block ${block}`, { class: at <= time ? "added" : "not-yet" });
    });
  }
  drawTaken(side, time, plan);
  side.part("launch-words").textContent = launchWords(side, time, plan, times);
}

// Of packed sequences and block masks: what each block takes, in its order. [{words, tiles: [{words, kind}], at}]
function takenBy(side, block, start) {
  const { problem } = side, [own, other] = side.walk.direction === "backward" ? ["keys", "queries"] : ["queries", "keys"];
  const found = [];
  for (const tile of block.tiles) {
    const sequence = problem.sequences ? sequenceAt(problem, tile.queries[0]) : undefined;
    const unit = problem.sequences ? sequence : `${tile.head} ${Math.floor(tile[own][0] / 128)}`;
    if (found.at(-1)?.unit !== unit) found.push({ unit, sequence, head: tile.head, first: Infinity, last: 0, tiles: new Map(), at: start + block.steps[tile.step].at });
    const taken = found.at(-1);
    [taken.first, taken.last] = [Math.min(taken.first, tile[own][0]), Math.max(taken.last, tile[own][1])];
    const kinds = taken.tiles.get(tile[other][0])?.kinds ?? new Set();
    taken.tiles.set(tile[other][0], { rows: tile[other], kinds: kinds.add(tile.kind) });
  }
  return found.map(({ sequence, head, first, last, tiles, at }) => {
    const [firstQuery, , firstOfKeys] = problem.sequences?.[sequence] ?? [0, 0, 0];
    const begins = { queries: firstQuery, keys: firstOfKeys };
    const within = (name, [from, to]) => `${from < to ? name : { queries: "query", keys: "key" }[name]} ${rows(from - begins[name], to - begins[name])}`;
    const whose = sequence !== undefined ? `sequence ${sequence}, ` : problem.batch * problem.heads > 1 ? `${headName(side, head)}, ` : "";
    return { at, words: whose + within(own, [first, last]),
             tiles: [...tiles.values()].map((each) => ({ words: within(other, each.rows), kind: each.kinds.has("partly") ? "partly" : [...each.kinds][0] })) };
  });
}

function drawTaken(side, time, plan) {
  const { problem } = side, place = side.part("taken");
  side.part("taken-section").hidden = !(problem.sequences || problem.listed) || !side.blocks().some((block) => block.tiles.length);
  place.replaceChildren();
  if (side.part("taken-section").hidden) return;
  side.blocks().forEach((block, i) => {
    const taken = takenBy(side, block, plan[i].from);
    if (!taken.length) return;
    const item = element(place, "li", `block ${i}: `);
    taken.forEach(({ words, tiles, at }, number) => {
      if (number) item.append("; then ");
      element(item, "span", `${words}: `, { class: at <= time ? "added" : "not-yet" });
      tiles.forEach((tile, t) => element(item, "span", `${t ? ", " : ""}${tile.words}${tile.kind === "partly" ? " (cut)" : ""}`));
    });
  });
  const idle = side.blocks().filter((block) => !block.tiles.length).length;
  if (idle) element(place, "li", `${several(idle, "block")} more: nothing is left for ${idle === 1 ? "it" : "them"}`);
}

function launchWords(side, time, plan, times) {
  const works = plan.filter(({ from, length }) => from <= time && time < from + length).length;
  const done = plan.filter(({ from, length }) => from + length <= time).length;
  const tiles = times.filter(({ to }) => to <= time).length;
  const processors = Number(side.part("processors").value);
  return `At ${time} of ${endOf(plan)} steps: ${works} of ${several(processors, "multiprocessor")} work${works === 1 ? "s" : ""}; ${done} of ${several(plan.length, "block")} ` +
    `${done === 1 ? "is" : "are"} done, and ${tiles} of ${several(times.length, "tile")}.`;
}

// What is to be seen: said once, of the whole plan.
function planWords(side, plan) {
  const processors = Number(side.part("processors").value), end = endOf(plan), lengths = plan.map(({ length }) => length);
  const busy = lengths.reduce((sum, length) => sum + length, 0) / (processors * end);
  const used = [...new Set(plan.map(({ on }) => on))], without = processors - used.length, wait = plan.some(({ from }) => from > 0);
  const tail = end - Math.min(...used.map((on) => endOf(plan.filter((each) => each.on === on))));
  const falls = lengths.every((length, i) => !i || length <= lengths[i - 1]) && lengths[0] !== lengths.at(-1);
  const skipped = side.blocks().reduce((sum, block) => sum + block.skipped.length, 0);
  const owns = side.walk.direction === "backward" && side.blocks().every(({ tiles }) => new Set(tiles.map(({ keys }) => keys[0])).size === 1);
  return `${owns ? "A block owns the keys of its column: their dK and dV stay with it, and its part of dQ goes to everybody’s sum. " : ""}` +
    `${several(plan.length, "block")} on ${several(processors, "multiprocessor")} ${plan.length === 1 ? "takes" : "take"} ${several(end, "step")}; ${processors === 1 ? "it is" : "the multiprocessors are"} busy ${Math.round(100 * busy)}% of that time.` +
    (wait || plan.length === 1 ? "" : ` All blocks start at once${falls ? "; if there were fewer multiprocessors, the longest blocks would start first" : ""}.`) +
    (falls && wait ? " The longest blocks start first, so that short ones fill the end." : "") +
    (without ? ` ${capital(several(without, "multiprocessor"))} ${without === 1 ? "gets" : "get"} no block.` : "") +
    (tail ? ` For the last ${several(tail, "step")} one multiprocessor or more${without ? " of the others" : ""} has nothing left: that is the tail.` : "") +
    (skipped ? ` ${capital(several(skipped, "tile"))} (dotted) no block ever touches.` : "");
}

function drawLaunchMatrices(side, time, times) {
  const place = side.part("launch-matrices"), { problem } = side;
  const most = 300, least = 60, [width, height] = [problem.seq_k, problem.seq_q].map((n) => Math.max(most * n / Math.max(problem.seq_q, problem.seq_k), least));
  const across = width / problem.seq_k, down = height / problem.seq_q;
  const heads = [...new Set(side.blocks().flatMap((block) => [...block.tiles, ...block.skipped].map((tile) => tile.head)))].sort((a, b) => a - b);
  place.replaceChildren();
  for (const head of heads) {
    const figure = element(place, "figure");
    const picture = svg(figure, "svg", { viewBox: `-1 -1 ${width + 2} ${height + 2}`, role: "img" });
    const of = times.filter(({ tile }) => tile.head === head);
    svg(picture, "rect", { class: "frame", x: 0, y: 0, width, height });
    const box = (tile, inset) => ({ x: tile.keys[0] * across + inset, y: tile.queries[0] * down + inset,
                                    width: Math.max((tile.keys[1] - tile.keys[0] + 1) * across - 2 * inset, 1), height: Math.max((tile.queries[1] - tile.queries[0] + 1) * down - 2 * inset, 1) });
    const patterns = { partly: "stripes", masked: "crosses", skipped: "dots" };
    const fill = (tile, kind) => {
      svg(picture, "rect", { class: kind, ...box(tile, 1) });
      if (patterns[kind]) svg(picture, "rect", { fill: `url(#${patterns[kind]})`, ...box(tile, 1) });
    };
    for (const { skipped } of side.blocks()) for (const tile of skipped) if (tile.head === head) fill(tile, "skipped");
    for (const { tile, block, from, to } of of) {
      if (to <= time) fill(tile, tile.kind);
      else svg(picture, "rect", { class: "coming", ...box(tile, 2) });
      if (from <= time && time < to) svg(picture, "rect", { class: "now", ...box(tile, 2) });
      if (from <= time && to > from)
        svg(picture, "text", { class: "owner", x: (tile.keys[0] + tile.keys[1] + 1) / 2 * across, y: (tile.queries[0] + tile.queries[1] + 1) / 2 * down + 5 }, String(block));
    }
    drawEdges(side, picture, 0, 0, across, down);
    const done = of.filter(({ to }) => to <= time).length;
    picture.setAttribute("aria-label", `${capital(headName(side, head))}: ${done} of ${several(of.length, "tile")} done`);
    element(figure, "figcaption", `${capital(headName(side, head))}: keys →, queries ↓`);
  }
  place.hidden = !heads.length;
}

function drawProcessors(side, time, plan, most) {
  const place = side.part("schedule"), focused = document.activeElement?.closest?.("[data-bar]")?.dataset.bar;
  const hadFocus = focused !== undefined && place.contains(document.activeElement);
  place.replaceChildren();
  const processors = Number(side.part("processors").value), high = 30, left = 30, end = endOf(plan);
  const wide = Math.max(place.clientWidth, 240), scale = (wide - left) / most;
  const x = (at) => left + at * scale;
  const picture = svg(place, "svg", { class: "gantt", viewBox: `0 0 ${wide} ${processors * high + 18}`, role: "group", "aria-label": "Blocks on multiprocessors" });
  for (let on = 0; on < processors; on++) {
    svg(picture, "text", { x: 0, y: on * high + 20 }, `SM ${on}`);
    const free = Math.max(0, ...plan.filter((each) => each.on === on).map(({ from, length }) => from + length));
    if (free < end) {
      const idle = { x: x(free), y: on * high + 4, width: (end - free) * scale, height: high - 6 };
      svg(picture, "rect", { class: "idle", ...idle });
      svg(picture, "rect", { fill: "url(#dots)", ...idle });
    }
  }
  plan.forEach(({ on, from, length }, i) => {
    const words = `${capital(blockWords(side, side.blocks()[i]))}; starts at ${from}. Go into it.`;
    const group = svg(picture, "g", { class: "bar-of", role: "button", tabindex: 0, "data-bar": i, "aria-label": words });
    const box = { x: x(from), y: on * high + 4, height: high - 6 };
    svg(group, "rect", { class: "bar", ...box, width: length * scale });
    svg(group, "rect", { class: "bar-done", ...box, width: Math.min(Math.max(time - from, 0), length) * scale });
    if (length * scale > 14) svg(group, "text", { class: "owner", x: x(from + length / 2), y: on * high + 20 }, String(i));
    svg(group, "title", {}, words);
    const enter = () => goInto(side, i);
    group.addEventListener("click", enter);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      enter();
    });
  });
  svg(picture, "line", { class: "time", x1: x(time), x2: x(time), y1: 0, y2: processors * high + 4 });
  svg(picture, "text", { class: "owner", x: Math.min(x(time), wide - 20), y: processors * high + 16 }, String(time));
  if (hadFocus) picture.querySelector(`[data-bar="${focused}"]`)?.focus();
  side.part("plan-words").textContent = planWords(side, plan);
}
