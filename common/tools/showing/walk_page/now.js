// What a step is for: its name in the algorithm, which part of it this is, and what it does to the chosen row, in a sentence; beside
// it the lines of the kernel. What moves, in bytes and rows, comes second.

const pretty = (name) => name.replaceAll("^T", "ᵀ").replaceAll(" *= ", " ×= ").replaceAll(" * ", " × ").replaceAll(" - ", " − ").replaceAll("delta", "δ");

const plainKernel = (launch) => launch.kernel.replace(/<.*/, "").replace(/.*::/, "");
const nameOf = (side, step) => (step.name === undefined ? undefined : step.names[step.name]);

// What it brings to the block, if that is all that it does: [tensors].
function brings(step) {
  if (step.work[4] || step.watched || step.written || step.uses) return [];
  return ["Q", "K", "V", "dO"].filter((tensor) => step.read?.[tensor] || step.started?.[tensor]);
}

// Steps of one party that have the name of step i, before and after it without another one: their numbers.
function runOf(side, i) {
  const steps = side.steps(), { by, name, from } = steps[i];
  const of = [...steps.keys()].filter((j) => String(steps[j].by) === String(by));
  const same = (j) => steps[j].name === name && steps[j].from === from;
  let first = of.indexOf(i), last = first;
  while (first > 0 && same(of[first - 1])) first--;
  while (last + 1 < of.length && same(of[last + 1])) last++;
  return of.slice(first, last + 1);
}

const does = (step) => Boolean(step.watched || step.work.some(Boolean));

// "A new maximum: l and O × 0.175", of the chosen row, or undefined.
function verdictOf(side, i) {
  const row = side.row?.[0] === "q" ? Number(side.row.slice(1)) : null;
  const change = row === null || side.walk.direction === "backward" ? null : changeOf(side, i, row);
  if (!change || change.after.correction === undefined) return undefined;
  if (!change.before || change.before.l === 0) return "The first maximum";
  return change.after.correction < 1 ? `A new maximum: l and O × ${shown(change.after.correction)}` : "No new maximum: nothing to correct";
}

// If a tile of the party begins here, and nothing is done with it yet: the step bears the name of what came before the barrier.
function arrives(side, i) {
  const step = side.steps()[i];
  return side.walk.direction === "forward" && side.block().tiles.some((tile) => tile.step === i) && !(step.watched || step.written || step.work[4]) &&
    i > 0 && side.steps()[i - 1].name === step.name && step.launch.blocks.some((block) => block.steps.some((each) => each.work[4]));
}

// The tile of a step, or what of its keys the step works on, where it shows that: a kernel may take a tile in several parts.
function partOfTile(side, i, tile) {
  const steps = side.steps(), by = String(steps[i].by);
  const shows = ({ watched = {} }) => watched.P ?? watched.S;
  const at = shows(steps[i]) ? i : steps.findLastIndex((step, j) => tile.step <= j && j <= i && String(step.by) === by && shows(step));
  if (at < 0 || arrives(side, i)) return tile;
  const found = shows(steps[at]), keys = [Math.min(...found.map((each) => each[2])), Math.max(...found.map((each) => each[2] + each[3] - 1))];
  const isPart = tile.keys[0] <= keys[0] && keys[1] <= tile.keys[1] && String(keys) !== String(tile.keys);
  return isPart ? { ...tile, keys } : tile;
}

// "S = QKᵀ, second half"
function headingOf(side, i) {
  const steps = side.steps(), step = steps[i], brought = brings(step);
  const name = arrives(side, i) ? undefined : nameOf(side, step), verdict = verdictOf(side, i);
  if (verdict) return verdict;
  const words = name ? pretty(name.name).replace(/^\d+\. /, "") : !step.names.length && side.walk.launches.length > 1 ? plainKernel(step.launch) : "";
  if (!words) return brought.length ? `${list(brought)} on the way to shared memory` : arrives(side, i) ? "A tile has arrived" : i === 0 ? "The block begins" : step.written ? "Results leave" : step.after ? `${partyName(step.by)} waits` : "In between";
  const alike = runOf(side, i).filter((j) => does(steps[j]) && !arrives(side, j) && Boolean(brings(steps[j]).length) === Boolean(brought.length) && list(brings(steps[j])) === list(brought));
  const isProduct = /S = |P V|dO|dS/.test(words) && does(step);
  const part = alike.indexOf(i) + 1, parts = isProduct ? alike.length : 1;
  const which = parts === 2 ? `, ${["first", "second"][part - 1]} half` : parts > 2 ? `, part ${part} of ${parts}` : "";
  return brought.length ? `${words}: ${list(brought)} on the way${which}` : `${words}${which}`;
}

const queryWords = (side, row) => {
  const { seq_q, batch, heads } = side.problem;
  return `query ${row % seq_q}${batch * heads > 1 ? ` of ${headName(side, Math.floor(row / seq_q))}` : ""}`;
};

// What the step does to the chosen row, or else to the tile.
function meaningOf(side, i) {
  const steps = side.steps(), step = steps[i];
  const whole = step.launch.blocks.some((block) => block.tiles.length) ? side.block().tiles[side.tileNow()] : undefined;
  const tile = whole && side.walk.direction === "forward" ? partOfTile(side, i, whole) : whole;
  const row = side.row?.[0] === "q" ? Number(side.row.slice(1)) : null;
  const keys = tile && `keys ${rows(...tile.keys)}`, queries = tile && `queries ${rows(...tile.queries)}`;
  if (side.walk.direction === "backward") return gradientWords(side, step, tile, queries, keys);
  const change = row === null ? null : changeOf(side, i, row);
  if (change) return changeWords(side, row, change, tile);
  if (row !== null && partsIn(step, row).length)
    return `${capital(queryWords(side, row))} had its keys in ${several(partsIn(step, row).length, "part")}. The O of each comes to the row’s O with the weight exp(LSE of the part − LSE of the row).`;
  const merges = shownAnywhere(side, ["LSE of a part"]).length && !step.launch.blocks.some(({ tiles }) => tiles.length);
  if (merges && step.written?.O) return "The O of the parts, each times its weight, have been added up: the sum leaves with the LSE of the row.";
  if (step.written?.O && !step.written.workspace) return `No key is left. O is divided by l, the sum of all weights, and leaves with LSE = ${shownAnywhere(side, ["m base 2"]).length ? "ln(2) (m + log₂ l)" : "m + log l"}.`;
  if (step.watched?.O && tile) return `The weights P of ${keys} times the rows of V are added to O: a row of it is the weighted sum of V over all keys so far.`;
  const brought = brings(step);
  if (brought.length) {
    const parts = brought.map((tensor) => partOfRow(side, step, tensor)).find(Boolean);
    return `${step.started ? "A copy starts" : "The block brings"}: ${list(brought.map((tensor) => `${rangeWords(side, tensor, (step.read ?? {})[tensor] ?? step.started[tensor])} of ${tensor}`))}` +
      `${parts ? `, ${parts}` : ""}. Shared memory then serves all threads of the block.`;
  }
  if (arrives(side, i)) return `K and V of ${keys} are in shared memory: the block goes on to them.`;
  const name = nameOf(side, step)?.name ?? "";
  if (tile && /S = /.test(name)) return `Each of ${queries} is multiplied with each of ${keys}: ${tile === whole ? "a tile of scores" : "a part of the tile’s scores"}.`;
  if (tile && /O/.test(name) && /P V/.test(name)) return `The weights P of ${keys} are multiplied with the rows of V and added to O.`;
  if (tile && name) return `${tile === whole ? "This tile is" : "These scores are"} of ${queries} and ${keys}.`;
  return "";
}

// "columns 0–31", where not the whole row is moved.
function partOfRow(side, step, tensor) {
  const part = step.parts?.read?.[tensor] ?? step.parts?.started?.[tensor];
  if (!part) return "";
  const bytes = 2; // of an element
  return `columns ${rows(part[0] / bytes, part[1] / bytes - 1)}`;
}

// {before, after} of m and l, if this step says what has become of them.
function changeOf(side, i, row) {
  const steps = side.steps(), after = running(steps[i], row);
  if (after.m === undefined && after.correction === undefined) return null;
  const before = steps.slice(0, i).map((step) => running(step, row)).findLast((found) => found.m !== undefined);
  return { before, after };
}

// "2.659 × 0.01754 + 1.101 = 1.148", which comes out for a reader who calculates it from the digits that are shown.
function sumWords(before, factor, after) {
  const [b, f, a] = [before, factor, after].map((x) => Number(x.toPrecision(4)));
  return `${shown(before)} × ${shown(factor)} + ${shown(Math.max(a - b * f, 0))} = ${shown(after)}`;
}

function changeWords(side, row, { before, after }, tile) {
  const who = capital(queryWords(side, row)), keys = tile ? `keys ${rows(...tile.keys)}` : "these keys";
  const seen = tile ? visibleKeys(side.problem, row % side.problem.seq_q) - tile.keys[0] : 1;
  if (seen <= 0) return `${who} sees none of ${keys}: the mask hides them, its P is 0, and nothing changes.`;
  if (!tile) return `${who} has all its scores: m = ${shown(after.m)} is the largest${after.l === undefined ? "" : `, l = ${shown(after.l)} the sum of exp(S − m), and each P is exp(S − m) / l`}.`;
  const known = before && Number.isFinite(before.m) && before.l !== 0;
  if (!known) return after.m === undefined ? `${who} meets its first scores, and m is set.` : `${who} meets its first scores. m = ${shown(after.m)}${after.l === undefined ? "" : `, and l = ${shown(after.l)} is the sum of its weights`}.`;
  if (after.correction !== undefined && after.correction < 1)
    return `A new maximum for ${queryWords(side, row)}${after.m === undefined ? "" : `: m rises from ${shown(before.m)} to ${shown(after.m)}`}. So l and O × ${shown(after.correction)}, and what ${keys} bring is added to that${known && before.l !== undefined && after.l !== undefined ? `: l = ${sumWords(before.l, after.correction, after.l)}` : ""}.`;
  return `No score of ${keys} ${after.correction === undefined ? "makes" : "is above m: nothing makes"} m of ${queryWords(side, row)} rise. l and O stay, and the new keys are added` +
    `${before.l !== undefined && after.l !== undefined ? `: l grows from ${shown(before.l)} to ${shown(after.l)}` : ""}.`;
}

function gradientWords(side, step, tile, queries, keys) {
  const shows = (name) => step.watched?.[name];
  if (step.written?.dK || step.written?.dV) return "All queries have passed: dK and dV of the block’s keys are whole, and leave.";
  if (shows("dQ")) {
    const of = joined(shows("dQ").map(([row, count]) => [row, row + count - 1])); // it may be of a tile before
    return `dS K of ${keys ?? "these keys"} is this block’s part of dQ, ${rangeWords(side, "dQ", of)}; other blocks of keys add theirs.`;
  }
  if (shows("dK") || shows("dV")) return `dV grows by Pᵀ dO and dK by dSᵀ Q of ${queries ?? "these queries"}: both stay with the block.`;
  if (shows("dS")) return "dS = P (dP − δ): what the loss says about each score. δ is one number for each query.";
  if (shows("P")) return "P is computed again from S and LSE: the forward stored one number for each query, and not the matrix.";
  const brought = brings(step);
  if (brought.length) return `${list(brought.map((tensor) => `${rangeWords(side, tensor, (step.read ?? {})[tensor] ?? step.started[tensor])} of ${tensor}`))} ${brought.length > 1 ? "are" : "is"} on the way to shared memory.`;
  return tile ? `This tile is of ${queries} and ${keys}.` : "";
}

function drawNow(side) {
  const i = side.step, step = side.steps()[i], name = arrives(side, i) ? undefined : nameOf(side, step);
  side.part("step-name").textContent = headingOf(side, i);
  const words = sentence(side, step), meaning = meaningOf(side, i);
  side.part("says").textContent = `${side.name ? `Step ${i + 1} of ${side.steps().length}. ` : ""}${meaning || words}`;
  side.part("moves").textContent = meaning ? words : "";
  side.part("source-part").hidden = !name?.source.length;
  if (!name?.source.length) return;
  side.part("source-where").textContent = `${pretty(name.name)} (${name.line.split(":")[0]}, from line ${name.line.split(":")[1]})`;
  if (side.part("source").textContent !== name.source.join("\n")) {
    side.part("source").textContent = name.source.join("\n");
    side.part("source").scrollTop = 0;
  }
}

// For who sees these letters for the first time.
function whatIsWhat(side) {
  const causal = side.problem.causal ? " The mask is causal: a query sees only the keys left of the stepped line, and a tile right of it counts for nothing." : "";
  const mask = causal + (side.problem.sequences ? " Sequences lie one behind the other, each in a frame: no query sees a key of another one." : side.problem.listed ? " A list says which tiles of 128 queries and 128 keys are computed, and in striped ones some pairs are hidden." : "");
  if (side.walk.direction === "backward")
    return "The forward made O = P V, with P = exp(S − LSE) and S = scale · Q Kᵀ. Here the loss’s gradient dO is given, and dQ, dK and dV are wanted: " +
      `dV = Pᵀ dO, dP = dO Vᵀ, dS = P (dP − δ), dQ = scale · dS K, dK = scale · dSᵀ Q.${mask}`;
  const shows = (name) => side.walk.launches.some((launch) => launch.blocks.some((block) => block.steps.some((step) => step.watched?.[name])));
  const corrects = shows("correction");
  return `Each query wants a weighted mean of the rows of V. The weight of a key is P = exp(S − m): S is its score, and m ${shows("-l") ? "is not far below" : "is"} the largest score ` +
    `${corrects ? "so far" : "of the row"}, so that exp cannot overflow. l is the sum of the weights, O that of weights times rows of V, and the mean is O / l, in which m cancels.` +
    `${corrects ? " Keys arrive tile by tile. When a larger m comes, l and O are multiplied by exp(old m − new m), and nothing is read again: " +
      "exp(S − new m) = exp(S − old m) · exp(old m − new m), with the same factor for every key." : ""}` +
    `${shows("m base 2") ? ` This kernel takes powers of 2 in place of those of e${shows("-l") ? ", and m rises only if it must, when a P would be above 2¹⁵: as m cancels, O / l is the same" : ""}.` : ""}` +
    `${side.walk.results.LSE?.made ? " LSE is the logarithm of the sum of exp(S) over all keys: a backward needs it." : ""}${mask}`;
}
