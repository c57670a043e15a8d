// One row of the results as it grows, next to the exact softmax.

const isWritten = (side, name, row) => side.stepsSoFar().some((step) => (step.written?.[name] ?? []).some(([first, last]) => first <= row && row <= last));
const rowOf = (result, row, columns) => [...floats(result).subarray(row * columns, (row + 1) * columns)];
const largest = (values) => Math.max(...values.map(Math.abs));

// To begin with, the row in the middle of those that the block owns: it sees some keys, and not all.
function middle(letter, found) {
  const rows = [...found[letter]].sort((a, b) => a - b);
  return rows.length ? `${letter}${rows[rows.length >> 1]}` : null;
}

// The rows of queries and of keys that the block shows or writes.
function fillRows(side) {
  const found = { q: new Set(), k: new Set() };
  for (const step of side.steps()) {
    for (const name of ["O", "LSE", "dQ", "dK", "dV"])
      for (const [first, last] of step.written?.[name] ?? []) for (let row = first; row <= last; row++) found[ofKeys.includes(name) ? "k" : "q"].add(row);
    for (const [name, rectangles] of Object.entries(step.watched ?? {}))
      for (const [first, count] of rectangles) for (let row = first; row < first + count; row++) found[ofKeys.includes(name) ? "k" : "q"].add(row);
  }
  const choice = side.part("row");
  choice.replaceChildren();
  for (const [letter, kind, length, heads] of [["k", "key", side.problem.seq_k, side.problem.kv_heads], ["q", "query", side.problem.seq_q, side.problem.heads]])
    for (const row of [...found[letter]].sort((a, b) => a - b))
      element(choice, "option", `${kind} ${row % length} of ${headName(side, Math.floor(row / length), heads)}`, { value: `${letter}${row}` });
  if (![...choice.options].some((option) => option.value === side.row)) side.row = middle(found.k.size ? "k" : "q", found);
  choice.value = side.row;
  choice.disabled = side.row === null;
}

// What a kernel calls its numbers of a row, and what they are in natural logarithms.
const running = { m: "m", "m base 2": "m, base 2", correction: "correction", l: "l", "-l": "l" };
function state(side, step, row) {
  const get = (name) => shownNumber(step, name, row);
  const minus = get("-l");
  const l = get("l") ?? (minus === undefined ? undefined : minus > 0 ? 0 : -minus); // -l is ∞ until the row has a maximum
  const m = get("m") ?? (get("m base 2") === undefined ? undefined : get("m base 2") * Math.LN2);
  return { m: get("m") ?? get("m base 2"), correction: get("correction"), l, lse: l === undefined ? undefined : l === 0 ? -Infinity : m + Math.log(l) };
}

function drawValues(side) {
  const place = side.part("values");
  place.replaceChildren();
  if (side.row === null) {
    element(place, "p", "This block writes no row of a result.", { class: "note" });
    return;
  }
  const row = Number(side.row.slice(1));
  if (side.row[0] === "k") {
    for (const name of ["dV", "dK"]) drawVector(side, place, row, name, "so far", 1);
    if (side.walk.rope) element(place, "p", "dK is of the rotated keys until it is written.", { class: "note" });
    return;
  }
  if (side.walk.direction === "backward") {
    drawVector(side, place, row, "dQ", "this block’s part", 1);
    return;
  }
  drawState(side, place, row);
  const p = newest(side, "P", row);
  if (p && !isWritten(side, "O", row)) {
    const [, [column, values]] = p;
    element(place, "p", `P of the last tile, from key ${column} on; the largest is ${shown(largest(values))}.`);
    bars(place, values, `P of the last tile, ${values.length} keys`);
  }
  const { l } = latestState(side, row);
  drawVector(side, place, row, "O", "O / l so far", l === undefined ? 1 : l === 0 ? 0 : 1 / l);
}

function latestState(side, row) {
  for (let i = side.step; i >= 0; i--) {
    const found = state(side, side.steps()[i], row);
    if (found.l !== undefined) return found;
  }
  return {};
}

function drawState(side, place, row) {
  const has = (name) => side.steps().some((step) => shownNumber(step, name, row) !== undefined);
  const names = Object.keys(running).filter(has);
  const exact = side.walk.results.LSE?.expected;
  if (!names.length) {
    element(place, "p", `${withoutNumbers(side) ? "This page was made without the numbers on their way" : "This kernel keeps m and l to itself"}: only what it writes to memory is seen here.`, { class: "note" });
  } else {
    const heads = ["step", ...["m", "correction", "l"].filter((name) => names.some((each) => running[each].startsWith(name))).map((name) => (name === "m" && has("m base 2") ? "m, base 2" : name)), "LSE so far"];
    const body = table(place, `As the kernel had them when a tile was done; LSE so far is ${has("m base 2") ? "ln(2) (m + log₂ l)" : "m + log l"}`, heads);
    side.steps().forEach((step, i) => {
      const found = state(side, step, row);
      if (i > side.step || found.m === undefined) return;
      const line = element(body, "tr", undefined, i === side.step ? { "aria-current": "step" } : {});
      element(line, "th", String(i + 1), { scope: "row" });
      for (const name of heads.slice(1)) {
        const x = name === "LSE so far" ? found.lse : found[name.split(",")[0]];
        element(line, "td", x === undefined ? "–" : shown(x));
      }
    });
    if (exact) {
      const line = element(body, "tr");
      element(line, "th", "exact", { scope: "row" });
      for (const name of heads.slice(1)) element(line, "td", name === "LSE so far" ? shown(floats(exact)[row]) : "");
    }
    if (has("m base 2"))
      element(place, "p", "This kernel’s m counts in powers of 2, and it follows the row’s maximum only when it must: where no correction stands, m stayed and nothing was corrected. " +
              "P is 2 to the power of what a score is above m, up to 2¹⁵, and l is the sum of P: only O / l and LSE are the same as in other kernels.", { class: "note" });
  }
  const made = side.walk.results.LSE?.made;
  if (made && floats(made).length && isWritten(side, "LSE", row))
    element(place, "p", `LSE as written is ${shown(floats(made)[row])}; exactly it is ${shown(floats(exact)[row])}.`, { "data-part": "lse" });
}

// A row of O or of a gradient: as written, else as the kernel showed it last; beside what it must become.
function drawVector(side, place, row, name, words, factor) {
  const { head_dim } = side.problem;
  const result = side.walk.results[name];
  const exact = result && rowOf(result.expected, row, head_dim);
  const made = result && isWritten(side, name, row);
  const shownRow = newest(side, name, row);
  if (!made && !shownRow) {
    element(place, "p", `Nothing of ${name} yet.`, { class: "note" });
    return;
  }
  const values = made ? rowOf(result.made, row, head_dim) : shownRow[1][1].map((x) => x * factor);
  const first = made ? 0 : shownRow[1][0];
  const comparable = made || (name !== "dQ" && !(name === "dK" && side.walk.rope));
  const beside = comparable ? exact?.slice(first, first + values.length) : undefined; // other blocks have parts of dQ, and dK may be of rotated keys
  const difference = beside && largest(values.map((x, d) => x - beside[d]));
  element(place, "p", `${made ? `${name} as written` : name === "O" ? words : `${name}, ${words}`}; ` +
          (beside ? `it differs from the exact ${name} by ${shown(difference)} at most.` : "there is no exact row to compare with."), { "data-part": `difference-${name}` });
  bars(place, values, `The row of ${name}, with marks where the exact values are`, beside);
}
