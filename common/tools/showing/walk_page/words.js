// What a walk says in words, so that nothing stands in a picture alone.
"use strict";

const number = (n) => n.toLocaleString("en-US");
const bytes = (n) => {
  const [unit, name] = n < 10240 ? [1, "B"] : n < 10485760 ? [1024, "KiB"] : [1048576, "MiB"];
  return `${number(Math.round(n / unit))} ${name}`;
};
const rows = (first, last) => (first === last ? `${first}` : `${first}–${last}`);
const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
const several = (n, one) => `${number(n)} ${one}${n === 1 ? "" : "s"}`;
const capital = (words) => words.replace(/^./, (letter) => letter.toUpperCase());

function shown(x) {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  return (Math.abs(x) >= 1e5 || Math.abs(x) < 1e-4 ? x.toExponential(3) : x.toPrecision(4)).replaceAll("-", "−");
}

// --- Rows of matrices, told head by head where a head has rows of its own ---

const ofKeys = ["K", "V", "dK", "dV"];
const ofQueries = ["Q", "O", "LSE", "dO", "dQ"];
const lengthOf = (side, tensor) => (ofKeys.includes(tensor) ? side.problem.seq_k : ofQueries.includes(tensor) ? side.problem.seq_q : undefined);
const headName = (side, head, heads = side.problem.heads) =>
  side.problem.batch === 1 ? `head ${head}` : `batch ${Math.floor(head / heads)}, head ${head % heads}`;

function rangeWords(side, tensor, ranges) {
  if (!ranges.length) return "no row";
  const length = lengthOf(side, tensor);
  const heads = ofKeys.includes(tensor) ? side.problem.kv_heads : side.problem.heads;
  const words = [];
  for (const [first, last] of ranges) {
    if (!length || side.walk.tensors.find((each) => each.name === tensor).rows === length) {
      words.push(rows(first, last));
      continue;
    }
    for (let head = Math.floor(first / length); head <= Math.floor(last / length); head++)
      words.push(`${rows(Math.max(first - head * length, 0), Math.min(last - head * length, length - 1))} of ${headName(side, head, heads)}`);
  }
  const count = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const unit = tensor === "workspace" ? "line" : "row";
  return words.length > 4 ? several(count, unit) : `${unit}${count === 1 ? "" : "s"} ${list(words)}`;
}

// --- Steps ---

const verbs = { read: "reads", used: "works with", started: "starts to copy", landed: "waits for the copies of", written: "writes" };

function stepWords(side, step) {
  const parts = [];
  for (const [move, verb] of Object.entries(verbs)) {
    if (step.after && move === "landed") continue;
    const together = new Map(); // matrices of which the same rows are touched
    for (const [tensor, ranges] of Object.entries(step[move] ?? {})) {
      const where = rangeWords(side, tensor, ranges);
      together.set(where, [...(together.get(where) ?? []), tensor]);
    }
    const phrases = [...together].map(([where, tensors]) => `${where} of ${list(tensors)}`);
    if (move === "used" && phrases.length) parts.push(`${verb} ${list(phrases)}`);
    else parts.push(...phrases.map((phrase) => `${verb} ${phrase}`));
  }
  if (step.writes) parts.push(`writes to ${list(step.writes.map((place) => step.places[place][2]))}`);
  const [, , , shared, flops, shuffles] = step.work;
  if (flops) parts.push(`multiplies on tensor cores, ${number(flops)} FLOP`);
  if (shared) parts.push(`moves ${bytes(shared)} through shared memory`);
  if (shuffles) parts.push(`does ${several(shuffles, "shuffle")}`);
  if (step.arrives) parts.push(`arrives at ${list(step.arrives.map((gate) => gateName(step, gate)))}`);
  if (!parts.length) parts.push("moves nothing that is recorded");
  const waits = step.after ? `${waitWords(side, step)}; then it ` : "";
  const ends = step.until === undefined ? "" : `; then ${step.until ? `the barrier at ${step.until}` : step.by ? "it returns" : "the block ends"}`;
  return `${waits}${list(parts)}${ends}.`;
}

// "waits at q_full and k_full[0], for the copies of rows 0–63 of Q and rows 0–63 of K"
function waitWords(side, step) {
  const copies = Object.entries(step.landed ?? {}).map(([tensor, ranges]) => `${rangeWords(side, tensor, ranges)} of ${tensor}`);
  return `waits at ${list(step.after.map(({ on }) => gateName(step, on)))}${copies.length ? `, for the copies of ${list(copies)}` : ""}`;
}

// --- Tiles and blocks ---

const kinds = { whole: "all of it visible", partly: "the mask takes a part", masked: "all of it masked",
                skipped: "skipped, nothing of it is visible" };
// Ranges, ascending, those that meet as one.
function joined(ranges) {
  const made = [];
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0]))
    if (made.length && first <= made.at(-1)[1] + 1) made.at(-1)[1] = Math.max(made.at(-1)[1], last);
    else made.push([first, last]);
  return made;
}
const tileWords = (tile) => `queries ${rows(...tile.queries)}, keys ${rows(...tile.keys)}`;

function blockWords(side, block) {
  const strips = new Map();
  for (const { head, queries, keys } of block.tiles) {
    const strip = strips.get(head) ?? { queries: [], keys: [] };
    strips.set(head, { queries: [...strip.queries, queries], keys: [...strip.keys, keys] });
  }
  const flat = (head, i) => head * side.problem.seq_q + i; // counted over all heads
  const where = [...strips].map(([head, strip]) => {
    const queries = joined(strip.queries), every = queries.map(([a, b]) => rows(flat(head, a), flat(head, b)));
    return `${headName(side, head)}, queries ${list(queries.map((each) => rows(...each)))}` +
      `${side.problem.batch * side.problem.heads > 1 ? ` (rows ${list(every)} of all heads)` : ""}, keys ${list(joined(strip.keys).map((each) => rows(...each)))}`;
  });
  const tiles = `${several(block.tiles.length, "tile")}${block.skipped.length ? `, ${block.skipped.length} skipped` : ""}`;
  return `block ${side.blocks().indexOf(block)}: ${[tiles, ...where, several(block.steps.length, "step")].join("; ")}`;
}
