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

const verbs = { read: "reads", started: "starts to copy", landed: "waits for the copies of", written: "writes" };

function stepWords(side, step) {
  const parts = [];
  for (const [move, verb] of Object.entries(verbs)) {
    const together = new Map(); // matrices of which the same rows are touched
    for (const [tensor, ranges] of Object.entries(step[move] ?? {})) {
      const where = rangeWords(side, tensor, ranges);
      together.set(where, [...(together.get(where) ?? []), tensor]);
    }
    for (const [where, tensors] of together) parts.push(`${verb} ${where} of ${list(tensors)}`);
  }
  const [, , , shared, flops, shuffles] = step.work;
  if (flops) parts.push(`multiplies on tensor cores, ${number(flops)} FLOP`);
  if (shared) parts.push(`moves ${bytes(shared)} through shared memory`);
  if (shuffles) parts.push(`does ${several(shuffles, "shuffle")}`);
  if (!parts.length) parts.push("moves nothing that is recorded");
  return `${list(parts)}; then ${step.until ? `the barrier at ${step.until}` : "the block ends"}.`;
}

// --- Tiles and blocks ---

const kinds = { whole: "all of it visible", partly: "the mask takes a part", masked: "all of it masked",
                skipped: "skipped, nothing of it is visible" };
const tileWords = (tile) => `queries ${rows(...tile.queries)}, keys ${rows(...tile.keys)}`;

function blockWords(side, block) {
  const strips = new Map();
  for (const { head, queries, keys } of block.tiles) {
    const [a, b, c, d] = strips.get(head) ?? [...queries, ...keys];
    strips.set(head, [Math.min(a, queries[0]), Math.max(b, queries[1]), Math.min(c, keys[0]), Math.max(d, keys[1])]);
  }
  const flat = (head, i) => head * side.problem.seq_q + i; // counted over all heads
  const where = [...strips].map(([head, [a, b, c, d]]) => `${headName(side, head)}, queries ${rows(a, b)}` +
    `${side.problem.batch * side.problem.heads > 1 ? ` (rows ${rows(flat(head, a), flat(head, b))} of all heads)` : ""}, keys ${rows(c, d)}`);
  const tiles = `${several(block.tiles.length, "tile")}${block.skipped.length ? `, ${block.skipped.length} skipped` : ""}`;
  return `block ${side.blocks().indexOf(block)}: ${[tiles, ...where, several(block.steps.length, "step")].join("; ")}`;
}
