// Shows the walk that stands in this page: see common/tools/showing/walk.py for what it holds.
"use strict";

const walk = JSON.parse(document.getElementById("walk").textContent);
const problem = walk.problem;
const $ = (id) => document.getElementById(id);
const chosen = { launch: 0, block: 0, step: 0, row: null };
let timer = null;

const launch = () => walk.launches[chosen.launch];
const block = () => launch().blocks[chosen.block];
const steps = () => block().steps;

// --- Words ---

const number = (n) => n.toLocaleString("en-US");
const bytes = (n) => (n < 10240 ? `${number(n)} B` : n < 10485760 ? `${number(Math.round(n / 1024))} KiB` : `${number(Math.round(n / 1048576))} MiB`);
const rows = (first, last) => (first === last ? `${first}` : `${first}–${last}`);
const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
const several = (n, one) => `${number(n)} ${one}${n === 1 ? "" : "s"}`;
const shown = (x) => (typeof x === "number" ? x.toPrecision(4) : String(x).replace("inf", "∞").replace("-", "−"));

// Rows of a matrix, head by head, where a head has rows of its own.
const lengths = { Q: problem.seq_q, O: problem.seq_q, LSE: problem.seq_q, dO: problem.seq_q, dQ: problem.seq_q,
                  K: problem.seq_k, V: problem.seq_k, dK: problem.seq_k, dV: problem.seq_k };
const ofKeys = ["K", "V", "dK", "dV"];
const headName = (head, heads) => (problem.batch === 1 ? `head ${head}` : `batch ${Math.floor(head / heads)}, head ${head % heads}`);

function rangeWords(tensor, ranges) {
  const length = lengths[tensor];
  const heads = ofKeys.includes(tensor) ? problem.kv_heads : problem.heads;
  const words = [];
  for (const [first, last] of ranges) {
    if (!length || walk.tensors.find((each) => each.name === tensor).rows === length) {
      words.push(rows(first, last));
      continue;
    }
    for (let head = Math.floor(first / length); head <= Math.floor(last / length); head++)
      words.push(`${rows(Math.max(first - head * length, 0), Math.min(last - head * length, length - 1))} of ${headName(head, heads)}`);
  }
  const count = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const unit = tensor === "workspace" ? "line" : "row";
  return words.length > 4 ? several(count, unit) : `${unit}${count === 1 ? "" : "s"} ${list(words)}`;
}

const verbs = { read: "reads", started: "starts to copy", landed: "waits for the copies of", written: "writes" };
// [[rows, [matrices of which these rows are touched]]]
function together(moved) {
  const by = new Map();
  for (const [tensor, ranges] of Object.entries(moved)) by.set(rangeWords(tensor, ranges), [...(by.get(rangeWords(tensor, ranges)) ?? []), tensor]);
  return by;
}

function stepWords(step) {
  const parts = [];
  for (const [move, verb] of Object.entries(verbs))
    for (const [where, tensors] of together(step[move] ?? {})) parts.push(`${verb} ${where} of ${list(tensors)}`);
  const [, , , shared, flops, shuffles] = step.work;
  if (flops) parts.push(`multiplies on tensor cores, ${number(flops)} FLOP`);
  if (shared) parts.push(`moves ${bytes(shared)} through shared memory`);
  if (shuffles) parts.push(`does ${several(shuffles, "shuffle")}`);
  if (!parts.length) parts.push("moves nothing that is recorded");
  return `${list(parts)}; then ${step.until ? `the barrier at ${step.until}` : "the block ends"}.`;
}

const kinds = { whole: "all of it visible", partly: "the mask takes a part", masked: "all of it masked" };
const tileWords = (tile) => `queries ${rows(...tile.queries)}, keys ${rows(...tile.keys)}`;
const blockName = (each) => `block (${each.block.join(", ")})`;

function blockWords(each) {
  const strips = new Map();
  for (const tile of each.tiles) {
    const name = tile.head;
    const before = strips.get(name) ?? [...tile.queries, ...tile.keys];
    strips.set(name, [Math.min(before[0], tile.queries[0]), Math.max(before[1], tile.queries[1]), Math.min(before[2], tile.keys[0]),
                      Math.max(before[3], tile.keys[1])]);
  }
  const where = [...strips].map(([head, [a, b, c, d]]) => `${headName(head, problem.heads)}, queries ${rows(a, b)}, keys ${rows(c, d)}`);
  return `${blockName(each)}: ${several(each.tiles.length, "tile")}${each.skipped.length ? `, ${each.skipped.length} skipped` : ""}` +
         `${where.length ? `; ${where.join("; ")}` : ""}; ${several(each.steps.length, "step")}`;
}

// --- Drawing ---

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

// From pale to full blue with black or white digits: from 3/4 on white ones are easier to read.
function shade(part) {
  const mix = (a, b) => Math.round(a + (b - a) * part);
  return { colour: `rgb(${mix(222, 0)}, ${mix(235, 86)}, ${mix(247, 140)})`, ink: part > 0.75 ? "#ffffff" : "#000000" };
}

function drawBlocks() {
  const most = Math.max(1, ...launch().blocks.map((each) => each.tiles.length));
  $("about-blocks").textContent = `${launch().kernel}: a grid of ${launch().grid.join(" × ")} blocks of ` +
    `${launch().block.reduce((a, b) => a * b)} threads. The number in a square, and the depth of its blue, is how many tiles the block computes.`;
  $("blocks").replaceChildren();
  launch().blocks.forEach((each, i) => {
    const button = element($("blocks"), "button", String(each.tiles.length),
                           { type: "button", role: "radio", "aria-label": blockWords(each), title: blockWords(each) });
    const { colour, ink } = shade(each.tiles.length / most);
    button.style.background = colour;
    button.style.color = ink;
    button.addEventListener("click", () => choose({ block: i, step: 0, row: null }));
    button.addEventListener("mouseenter", () => ($("about-block").textContent = blockWords(each)));
    button.addEventListener("focus", () => ($("about-block").textContent = blockWords(each)));
    button.addEventListener("mouseleave", () => ($("about-block").textContent = blockWords(block())));
  });
}

function markBlock() {
  [...$("blocks").children].forEach((button, i) => {
    button.setAttribute("aria-checked", i === chosen.block);
    button.tabIndex = i === chosen.block ? 0 : -1;
  });
  $("about-block").textContent = blockWords(block());
}

// The last tile that the block had in its hands at this step.
const tileNow = () => block().tiles.findLastIndex((tile) => tile.step <= chosen.step);

function drawScores() {
  const now = tileNow();
  const { tiles, skipped } = block();
  const head = tiles[Math.max(now, 0)]?.head ?? 0;
  const left = 34, top = 20, most = 460;
  const scale = most / Math.max(problem.seq_q, problem.seq_k);
  const width = problem.seq_k * scale, height = problem.seq_q * scale;
  const picture = $("scores");
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${left + width + 8} ${top + height + 8}`);
  const box = (tile, inset) => ({ x: left + tile.keys[0] * scale + inset, y: top + tile.queries[0] * scale + inset,
                                  width: Math.max((tile.keys[1] - tile.keys[0] + 1) * scale - 2 * inset, 1),
                                  height: Math.max((tile.queries[1] - tile.queries[0] + 1) * scale - 2 * inset, 1) });
  svg(picture, "rect", { class: "frame", x: left, y: top, width, height });
  svg(picture, "text", { x: left, y: 13 }, `keys 0 to ${problem.seq_k - 1} →`);
  svg(picture, "text", { transform: `translate(13 ${top}) rotate(90)` }, `queries 0 to ${problem.seq_q - 1} →`);
  const patterns = { partly: "stripes", masked: "crosses", skipped: "dots" };
  const fill = (tile, kind) => {
    const group = svg(picture, "g", {});
    svg(group, "rect", { class: kind, ...box(tile, 1) });
    if (patterns[kind]) svg(group, "rect", { fill: `url(#${patterns[kind]})`, ...box(tile, 1) });
    svg(group, "title", {}, `${tileWords(tile)}: ${kinds[kind] ?? "skipped, nothing of it is visible"}`);
  };
  for (const tile of skipped) if (tile.head === head) fill(tile, "skipped");
  tiles.forEach((tile, i) => {
    if (tile.head !== head) return;
    if (i <= now) fill(tile, tile.kind);
    else svg(picture, "rect", { class: "coming", ...box(tile, 2) });
  });
  if (problem.causal) drawEdge(picture, left, top, scale);
  if (now >= 0) svg(picture, "rect", { class: "now", ...box(tiles[now], 2) });

  const done = tiles.slice(0, now + 1);
  const count = (kind) => done.filter((tile) => tile.kind === kind).length;
  $("scores-words").textContent =
    !tiles.length ? "This block reads no keys and values with queries: it has no tiles." :
    `${headName(head, problem.heads)}: `.replace(/^./, (letter) => letter.toUpperCase()) + (now < 0 ? "no tile yet. " : `now ${tileWords(tiles[now])}: ${kinds[tiles[now].kind]}. `) +
    `So far ${count("whole")} whole, ${count("partly")} partly masked and ${count("masked")} wholly masked of ` +
    `${several(tiles.length, "tile")}; ${skipped.length} skipped.`;
}

// Which keys a query sees, as a line: left of it is what counts.
function drawEdge(picture, left, top, scale) {
  let path = "";
  for (let i = 0; i < problem.seq_q; i++) {
    const visible = Math.min(Math.max(i + problem.seq_k - problem.seq_q + 1, 0), problem.seq_k);
    path += `${path ? "L" : "M"}${left + visible * scale} ${top + i * scale}V${top + (i + 1) * scale}`;
  }
  svg(picture, "path", { class: "edge", d: path });
}

const strips = new Map();
function makeMatrices() {
  for (const tensor of walk.tensors) {
    const figure = element($("matrices"), "figure", undefined, { class: "matrix" });
    const picture = svg(figure, "svg", { viewBox: `0 0 10 ${tensor.rows}`, preserveAspectRatio: "none", role: "img" });
    element(figure, "figcaption", tensor.name);
    strips.set(tensor.name, picture);
  }
}

function drawMatrices() {
  const words = [];
  for (const tensor of walk.tensors) {
    const picture = strips.get(tensor.name);
    picture.replaceChildren();
    const band = (ranges, kind, pattern) => {
      for (const [first, last] of ranges ?? []) {
        const place = { x: 0, y: first, width: 10, height: last - first + 1 };
        svg(picture, "rect", { class: kind, ...place });
        if (pattern) svg(picture, "line", { class: "head", x1: 0, x2: 10, y1: first, y2: last + 1 });
      }
    };
    const moved = (step, move) => step[move]?.[tensor.name];
    for (const step of steps().slice(0, chosen.step)) for (const move of ["read", "landed", "written"]) band(moved(step, move), "before");
    band(onTheirWay(tensor.name), "started", true);
    const step = steps()[chosen.step];
    for (const move of ["read", "landed", "written"]) band(moved(step, move), move);
    const length = lengths[tensor.name];
    for (let row = length; length && row < tensor.rows; row += length) svg(picture, "line", { class: "head", x1: 0, x2: 10, y1: row, y2: row });
    const now = Object.keys(verbs).filter((move) => moved(step, move)).map((move) => `${verbs[move]} ${rangeWords(tensor.name, moved(step, move))}`);
    picture.setAttribute("aria-label", `${tensor.name}, ${several(tensor.rows, "row")}: ${now.length ? list(now) : "untouched in this step"}`);
    if (now.length) words.push(`${tensor.name}: ${list(now)}`);
  }
  $("matrices-words").textContent = words.length ? `${words.join("; ")}.` : "No row of any matrix is touched in this step.";
}

// Copies that have been started and have not landed.
function onTheirWay(name) {
  const away = new Set();
  const each = (ranges, does) => (ranges ?? []).forEach(([first, last]) => { for (let row = first; row <= last; row++) does(row); });
  for (const step of steps().slice(0, chosen.step + 1)) {
    each(step.started?.[name], (row) => away.add(row));
    each(step.landed?.[name], (row) => away.delete(row));
  }
  const ranges = [];
  for (const row of [...away].sort((a, b) => a - b))
    if (ranges.length && ranges.at(-1)[1] === row - 1) ranges.at(-1)[1] = row;
    else ranges.push([row, row]);
  return ranges;
}

const measures = ["Global memory, asked through L2", "of it, new to this block", "of it, new to the launch (DRAM)", "Shared memory"];
function drawBytes() {
  const sum = (until, i) => steps().slice(0, until).reduce((total, step) => total + step.work[i], 0);
  const body = document.querySelector("#bytes tbody");
  body.replaceChildren();
  measures.forEach((name, i) => {
    const line = element(body, "tr");
    element(line, "th", name, { scope: "row" });
    for (const n of [steps()[chosen.step].work[i], sum(chosen.step + 1, i), sum(undefined, i)]) element(line, "td", bytes(n));
  });
}

// --- Values of one row ---

function rowsOfBlock() {
  const found = new Set();
  for (const step of steps()) {
    for (const name of ["O", "LSE", "dQ"])
      for (const [first, last] of step.written?.[name] ?? []) for (let row = first; row <= last; row++) found.add(row);
    for (const runs of Object.values(step.watched ?? {})) for (const [row] of runs) found.add(row);
  }
  return [...found].sort((a, b) => a - b);
}

function fillRows() {
  const known = rowsOfBlock();
  $("row").replaceChildren();
  for (const row of known) element($("row"), "option", `${row % problem.seq_q} of ${headName(Math.floor(row / problem.seq_q), problem.heads)}`, { value: row });
  if (!known.includes(chosen.row)) chosen.row = known[0] ?? null;
  $("row").value = chosen.row;
}

// What the kernel showed of this row in a step: [[first column, values]].
const watched = (step, name) => (step.watched?.[name] ?? []).filter(([row]) => row === chosen.row).map(([, column, values]) => [column, values]);
const isWritten = (name, until) => steps().slice(0, until + 1).some((step) =>
  (step.written?.[name] ?? []).some(([first, last]) => first <= chosen.row && chosen.row <= last));

function curve(parent, values, words) {
  const finite = values.map((x) => (typeof x === "number" ? x : 0));
  const most = Math.max(...finite.map(Math.abs), 1e-30);
  const picture = svg(parent, "svg", { viewBox: `0 -1 ${values.length} 2`, preserveAspectRatio: "none", role: "img", "aria-label": words });
  finite.forEach((x, i) => svg(picture, "rect", { class: x < 0 ? "partly" : "whole", x: i, width: 0.8, y: Math.min(0, -x / most), height: Math.abs(x) / most }));
}

function drawValues() {
  const place = $("values");
  place.replaceChildren();
  if (chosen.row === null) {
    element(place, "p", "This block writes no row of O or dQ.", { class: "note" });
    return;
  }
  const names = ["m", "correction", "l"].filter((name) => steps().some((step) => watched(step, name).length));
  if (names.length) {
    const table = element(element(place, "div", undefined, { class: "scroll" }), "table");
    element(table, "caption", "As the kernel had them when a tile was done");
    const head = element(element(table, "thead"), "tr");
    for (const name of ["step", ...names]) element(head, "th", name, { scope: "col" });
    const body = element(table, "tbody");
    steps().forEach((step, i) => {
      if (i > chosen.step || !names.some((name) => watched(step, name).length)) return;
      const line = element(body, "tr", undefined, i === chosen.step ? { "aria-current": "step" } : {});
      element(line, "th", String(i + 1), { scope: "row" });
      for (const name of names) element(line, "td", shown(watched(step, name)[0]?.[1][0] ?? "–"));
    });
    if (!body.children.length) element(place, "p", "No tile is done yet.", { class: "note" });
  } else {
    element(place, "p", "This kernel keeps m and l in registers and does not show them: only what it writes to memory is seen here.", { class: "note" });
  }
  for (const [name, words] of [["P", "P of the last tile, exp(S − m)"], ["O", "O, not yet divided by l"]]) {
    const last = steps().slice(0, chosen.step + 1).findLast((step) => watched(step, name).length);
    if (!last || (name === "O" && isWritten("O", chosen.step))) continue;
    const [[column], values] = [watched(last, name)[0], watched(last, name).flatMap(([, each]) => each)];
    element(place, "p", `${words}: from ${name === "P" ? "key" : "column"} ${column}, largest ${shown(Math.max(...values.map(Math.abs)))}`);
    curve(place, values, words);
  }
  drawResult(place);
}

function drawResult(place) {
  const { O, LSE } = walk.results;
  if (!O) return;
  if (!isWritten("O", chosen.step)) {
    element(place, "p", "O of this row has not been written yet.", { class: "note" });
    return;
  }
  const of = (numbers) => numbers.slice(chosen.row * problem.head_dim, (chosen.row + 1) * problem.head_dim);
  const difference = Math.max(...of(O).map((x, d) => Math.abs(x - of(walk.expected.O)[d])));
  element(place, "p", `O as written; it differs from the exact softmax by ${shown(difference)} at most.`, { id: "difference" });
  curve(place, of(O), "The row of O as written");
  if (LSE && isWritten("LSE", chosen.step))
    element(place, "p", `LSE as written is ${shown(LSE[chosen.row])}, exactly it is ${shown(walk.expected.LSE[chosen.row])}.`);
}

// --- Moving through it ---

function show() {
  const count = steps().length;
  $("scrub").max = count;
  $("scrub").value = chosen.step + 1;
  $("scrub").setAttribute("aria-valuetext", `step ${chosen.step + 1} of ${count}`);
  $("number").textContent = `${chosen.step + 1} of ${count}`;
  $("says").textContent = `The block ${stepWords(steps()[chosen.step])}`;
  $("first").disabled = $("back").disabled = chosen.step === 0;
  $("last").disabled = $("forward").disabled = chosen.step === count - 1;
  for (const [i, item] of [...$("steps").children].entries()) item.toggleAttribute("aria-current", i === chosen.step);
  drawScores();
  drawMatrices();
  drawBytes();
  drawValues();
}

function choose(changes) {
  Object.assign(chosen, changes);
  if ("launch" in changes) drawBlocks();
  if ("block" in changes) {
    markBlock();
    fillRows();
    $("steps").replaceChildren();
    for (const step of steps()) element($("steps"), "li", stepWords(step));
  }
  show();
}

function go(step) {
  choose({ step: Math.min(Math.max(step, 0), steps().length - 1) });
}

function pause() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
}

function play() {
  if (chosen.step === steps().length - 1) go(0);
  $("play").textContent = "Pause";
  timer = setInterval(() => {
    go(chosen.step + 1);
    if (chosen.step === steps().length - 1) pause();
  }, Number($("speed").value));
}

const toggle = () => (timer ? pause() : play());

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, input, summary")) return;
  const inBlocks = event.target.closest("#blocks");
  if (inBlocks) {
    const turn = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!turn) return;
    const count = launch().blocks.length;
    choose({ block: (chosen.block + turn + count) % count, step: 0, row: null });
    $("blocks").children[chosen.block].focus();
    event.preventDefault();
    return;
  }
  const does = { ArrowRight: () => go(chosen.step + 1), ArrowLeft: () => go(chosen.step - 1), Home: () => go(0),
                 End: () => go(steps().length - 1), " ": event.target.closest("button") ? null : toggle }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
}

$("problem").textContent = `${walk.words}${walk.rope ? ", with RoPE" : ""}`;
walk.launches.forEach((each, i) => element($("launch"), "option", `${i + 1}: ${each.kernel}`, { value: i }));
$("launch-label").hidden = walk.launches.length === 1;
$("workspace-note").hidden = !walk.tensors.some((each) => each.name === "workspace");
$("launch").addEventListener("change", () => choose({ launch: Number($("launch").value), block: 0, step: 0, row: null }));
$("row").addEventListener("change", () => choose({ row: Number($("row").value) }));
$("scrub").addEventListener("input", () => go(Number($("scrub").value) - 1));
$("first").addEventListener("click", () => go(0));
$("back").addEventListener("click", () => go(chosen.step - 1));
$("forward").addEventListener("click", () => go(chosen.step + 1));
$("last").addEventListener("click", () => go(steps().length - 1));
$("play").addEventListener("click", toggle);
$("speed").addEventListener("change", () => timer && (pause(), play()));
document.addEventListener("keydown", onKey);
makeMatrices();
const tilesOf = (each) => each.blocks.reduce((sum, one) => sum + one.tiles.length, 0);
const first = walk.launches.reduce((best, each, i) => (tilesOf(each) > tilesOf(walk.launches[best]) ? i : best), 0);
$("launch").value = first;
choose({ launch: first, block: 0, step: 0 });
