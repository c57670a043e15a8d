// One row of the results as it grows, next to the exact softmax.

const holds = (ranges, row) => (ranges ?? []).some(([first, last]) => first <= row && row <= last);
const isWritten = (side, name, row) => side.stepsSoFar().some((step) => holds(step.written?.[name], row));
const rowOf = (result, row, columns) => [...floats(result).subarray(row * columns, (row + 1) * columns)];
const largest = (values) => Math.max(...values.map(Math.abs));

// --- Which row ---

// {q: rows of queries, k: rows of keys} that are shown or written in these steps, ascending.
function rowsOf(steps) {
  const found = { q: new Set(), k: new Set() };
  const add = (name, first, last) => {
    for (let row = first; row <= last; row++) found[ofKeys.includes(name) ? "k" : "q"].add(row);
  };
  for (const step of steps) {
    for (const name of ["O", "LSE", "dQ", "dK", "dV"])
      for (const [first, last] of step.written?.[name] ?? []) add(name, first, last);
    for (const [name, rectangles] of Object.entries(step.watched ?? {}))
      for (const [first, count] of rectangles) add(name, first, first + count - 1);
  }
  const ascending = (rows) => [...rows].sort((a, b) => a - b);
  return { q: ascending(found.q), k: ascending(found.k) };
}

function fillRows(side) {
  const { seq_q, seq_k, heads, kv_heads } = side.problem;
  const found = rowsOf(side.steps());
  const choice = side.part("row");
  choice.replaceChildren();
  for (const [letter, kind, length, ofHeads] of [["k", "key", seq_k, kv_heads], ["q", "query", seq_q, heads]])
    for (const row of found[letter]) {
      const words = `${kind} ${row % length} of ${headName(side, Math.floor(row / length), ofHeads)}`;
      element(choice, "option", words, { value: `${letter}${row}` });
    }
  if (![...choice.options].some((option) => option.value === side.row)) {
    const ofBlock = rowsOf(side.blocks()[side.blockAt].steps); // and not of the other launches' blocks
    const letter = ofBlock.k.length ? "k" : "q"; // in the middle of the first head: it sees some keys, and not all
    const length = letter === "k" ? seq_k : seq_q, all = ofBlock[letter].length ? ofBlock[letter] : found[letter];
    const ofHead = all.filter((row) => Math.floor(row / length) === Math.floor(all[0] / length));
    side.row = ofHead.length ? `${letter}${ofHead[ofHead.length >> 1]}` : null;
  }
  choice.value = side.row;
  choice.disabled = side.row === null;
}

function drawValues(side) {
  const place = side.part("values");
  place.replaceChildren();
  side.part("bars-legend").hidden = true;
  if (side.row === null || withoutNumbers(side)) {
    element(place, "p", side.row === null ? "This block writes no row of a result." : "This page was made without numbers.", { class: "note" });
    return;
  }
  const row = Number(side.row.slice(1));
  if (side.row[0] === "k") {
    for (const name of ["dV", "dK"]) drawVector(side, place, row, name, `${name} so far`, 1);
    if (side.walk.rope) element(place, "p", "dK is of the rotated keys until it is written.", { class: "note" });
  } else if (side.walk.direction === "backward") {
    drawVector(side, place, row, "dQ", "dQ, this block’s part", 1);
  } else {
    if (!drawParts(side, place, row)) drawRunning(side, place, row);
    drawLastP(side, place, row);
    const steps = side.stepsSoFar(), lastO = steps.findLastIndex((step) => shownInRow(step, "O", row).length);
    const lOf = (of) => of.map((step) => running(step, row).l).findLast((l) => l !== undefined);
    const isBehind = lastO >= 0 && steps.slice(lastO + 1).some((step) => running(step, row).l !== undefined); // l has one more tile than O
    const l = lOf(isBehind ? steps.slice(0, lastO + 1) : steps);
    drawVector(side, place, row, "O", `O / l ${isBehind ? "before this tile, which l has already and O lacks still" : "so far"}`, l === undefined ? 1 : l === 0 ? 0 : 1 / l);
  }
  side.part("bars-legend").hidden = !place.querySelector(".bars");
}

// --- m, the correction, l ---

// As a step left them, and the LSE that they give. A kernel may keep m in powers of 2, and -l, which is ∞ until there is an m.
function running(step, row) {
  const get = (name) => shownNumber(step, name, row);
  const base2 = get("m base 2"), minus = get("-l");
  const m = get("m") ?? base2;
  const l = get("l") ?? (minus === undefined ? undefined : Math.max(-minus, 0));
  const natural = base2 === undefined ? m : m * Math.LN2;
  return { m, correction: get("correction"), l, lse: l === undefined ? undefined : l === 0 ? -Infinity : natural + Math.log(l) };
}

function drawRunning(side, place, row) {
  const has = (name) => side.steps().some((step) => shownNumber(step, name, row) !== undefined);
  const base2 = has("m base 2");
  const { made, expected } = side.walk.results.LSE ?? {};
  if (!base2 && !has("m")) {
    const seesNone = visibleKeys(side.problem, row % side.problem.seq_q) <= firstKey(side.problem, row % side.problem.seq_q) && shownAnywhere(side, ["m", "m base 2"]).length;
    const why = seesNone ? "This row sees no key, and the kernel computes nothing for it" : "This kernel keeps m and l to itself";
    element(place, "p", `${why}: only what it writes to memory is seen here.`, { class: "note" });
  } else {
    const writesLse = made && floats(made).length > 0; // what corrects nothing and writes no LSE needs neither word
    const columns = { m: base2 ? "m, base 2" : "m", ...(has("correction") && { correction: "correction" }), l: "l", ...(writesLse && { lse: "LSE so far" }) };
    const sum = writesLse ? `; LSE so far is ${base2 ? "ln(2) (m + log₂ l)" : "m + log l"}` : "";
    const body = table(place, `As the kernel had them when a tile was done${sum}`, ["step", ...Object.values(columns)]);
    side.stepsSoFar().forEach((step, i) => {
      const found = running(step, row);
      if (found.m === undefined) return;
      const line = element(body, "tr", undefined, i === side.step ? { "aria-current": "step" } : {});
      element(line, "th", String(i + 1), { scope: "row" });
      for (const name of Object.keys(columns)) element(line, "td", found[name] === undefined ? "–" : shown(found[name]));
    });
    if (writesLse) {
      const line = element(body, "tr");
      element(line, "th", "exact", { scope: "row" });
      for (const name of Object.keys(columns)) element(line, "td", name === "lse" ? shown(floats(expected)[row]) : "");
    }
    if (has("-l"))
      element(place, "p", "This kernel’s m counts in powers of 2, and it follows the row’s maximum only when it must: where no correction " +
              "stands, m stayed and nothing was corrected. P is 2 to the power of what a score is above m, up to 2¹⁵, and l is the sum of " +
              "P: only O / l and LSE are the same as in other kernels.", { class: "note" });
    else if (base2) element(place, "p", "This kernel’s m counts in powers of 2: it is the row’s maximum times log₂ e.", { class: "note" });
  }
  if (made && floats(made).length && isWritten(side, "LSE", row)) {
    const words = `LSE as written is ${shown(floats(made)[row])}; exactly it is ${shown(floats(expected)[row])}.`;
    element(place, "p", words, { "data-part": "lse" });
  }
}

// --- Parts that are merged ---

const partsIn = (step, row) => shownInRow(step, "LSE of a part", row).flatMap(([, values]) => values);

function drawParts(side, place, row) {
  const parts = side.stepsSoFar().map((step) => partsIn(step, row)).findLast((found) => found.length);
  if (!parts) return false;
  const sum = parts.reduce((so, lse) => so + Math.exp(lse), 0);
  const body = table(place, "The parts of the row’s keys; their weights add up to 1", ["part", "LSE", "weight in O"]);
  parts.forEach((lse, i) => {
    const line = element(body, "tr");
    element(line, "th", String(i), { scope: "row" });
    for (const value of [lse, Math.exp(lse) / sum]) element(line, "td", shown(value));
  });
  return true;
}

// --- Vectors ---

function drawLastP(side, place, row) {
  const p = newest(side, "P", row);
  if (!p || isWritten(side, "O", row)) return;
  const [column, values] = p, part = element(place, "div", undefined, { class: "last-p" });
  element(part, "p", `P of the last tile, from key ${column} on; the largest is ${shown(largest(values))}.`);
  bars(part, values, `P of the last tile, ${values.length} keys`);
}

// A row of O or of a gradient: as written, else as the kernel showed it last; beside what it must become.
function drawVector(side, place, row, name, words, factor) {
  const columns = side.walk.tensors.find((tensor) => tensor.name === name).row_bytes / 2;
  const result = side.walk.results[name];
  const made = result && isWritten(side, name, row);
  const onItsWay = newest(side, name, row);
  if (!made && !onItsWay) {
    element(place, "p", `Nothing of ${name} yet.`, { class: "note" });
    return;
  }
  const [first, values] = made ? [0, rowOf(result.made, row, columns)] : [onItsWay[0], onItsWay[1].map((x) => x * factor)];
  const comparable = made || (name !== "dQ" && !(name === "dK" && side.walk.rope)); // other blocks have parts of dQ
  const exact = comparable && result ? rowOf(result.expected, row, columns).slice(first, first + values.length) : undefined;
  const difference = exact && largest(values.map((x, d) => x - exact[d]));
  const compared = exact ? `it differs from the exact ${name} by ${shown(difference)} at most.` : "there is no exact row to compare with.";
  element(place, "p", `${made ? `${name} as written` : words}; ${compared}`, { "data-part": `difference-${name}` });
  bars(place, values, `The row of ${name}${exact ? ", with marks where the exact values are" : ""}`, exact);
}
