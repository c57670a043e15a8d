// The score matrix of a head, with the tiles of the chosen block; and the numbers of one tile.

function drawScores(side, chooseTile) {
  const { problem } = side;
  const now = side.tileNow();
  const { tiles, skipped } = side.block();
  const head = tiles[Math.max(now, 0)]?.head ?? 0;
  const left = 46, top = 32, most = 460, least = 180; // the least: as long as the words beside it
  const [width, height] = [problem.seq_k, problem.seq_q].map((n) => Math.max(most * n / Math.max(problem.seq_q, problem.seq_k), least));
  const across = width / problem.seq_k, down = height / problem.seq_q;
  const picture = side.part("scores");
  const focused = document.activeElement?.closest?.("[data-tile]")?.dataset.tile;
  const hadFocus = focused !== undefined && picture.contains(document.activeElement);
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${left + most + 8} ${top + height + 8}`);
  const box = (tile, inset) => ({ x: left + tile.keys[0] * across + inset, y: top + tile.queries[0] * down + inset,
                                  width: Math.max((tile.keys[1] - tile.keys[0] + 1) * across - 2 * inset, 1),
                                  height: Math.max((tile.queries[1] - tile.queries[0] + 1) * down - 2 * inset, 1) });
  svg(picture, "rect", { class: "frame", x: left, y: top, width, height });
  svg(picture, "text", { x: left, y: 22 }, `keys 0 to ${problem.seq_k - 1} →`);
  svg(picture, "text", { transform: `translate(18 ${top}) rotate(90)` }, `queries 0 to ${problem.seq_q - 1} →`);
  const patterns = { partly: "stripes", masked: "crosses", skipped: "dots" };
  const fill = (parent, tile, kind) => {
    svg(parent, "rect", { class: kind, ...box(tile, 1) });
    if (patterns[kind]) svg(parent, "rect", { fill: `url(#${patterns[kind]})`, ...box(tile, 1) });
    svg(parent, "title", {}, `${tileWords(tile)}: ${kinds[kind]}`);
  };
  for (const tile of skipped) if (tile.head === head) fill(svg(picture, "g", {}), tile, "skipped");
  tiles.forEach((tile, i) => {
    if (tile.head !== head) return;
    const done = tile.step <= side.step;
    const group = svg(picture, "g", { class: "tile", role: "button", tabindex: 0, "data-tile": i,
                                      "aria-label": `${tileWords(tile)}: ${done ? kinds[tile.kind] : "still to come"}; show its numbers` });
    if (done) fill(group, tile, tile.kind);
    else svg(group, "rect", { class: "coming", ...box(tile, 2) });
    group.addEventListener("click", () => chooseTile(i));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      chooseTile(i);
    });
  });
  drawEdges(side, picture, left, top, across, down);
  const row = side.row?.[0] === "q" ? Number(side.row.slice(1)) : -1; // the one of which m, l and O are told
  side.part("row-legend").hidden = row < 0 || Math.floor(row / problem.seq_q) !== head;
  if (!side.part("row-legend").hidden)
    svg(picture, "path", { class: "row-line", d: `M${left} ${top + (row % problem.seq_q + 0.5) * down}h${width}m2 -5l-8 5l8 5z` });
  if (now >= 0) svg(picture, "rect", { class: "now", ...box(tiles[now], 2) });
  if (side.tile !== null && tiles[side.tile]) svg(picture, "rect", { class: "chosen", ...box(tiles[side.tile], 6) });
  if (hadFocus) picture.querySelector(`[data-tile="${focused}"]`)?.focus();

  const count = (kind) => side.tilesSoFar().filter((tile) => tile.kind === kind).length;
  side.part("scores-words").textContent =
    !tiles.length ? "This block reads no keys and values with queries: it has no tiles." :
    `${capital(headName(side, head))}: ${now < 0 ? "no tile yet" : `now ${tileWords(tiles[now])}: ${kinds[tiles[now].kind]}`}. ` +
    `So far ${count("whole")} whole, ${count("partly")} partly masked and ${count("masked")} wholly masked of ` +
    `${several(tiles.length, "tile")}; ${skipped.length} skipped.`;
}

// [first query, queries, first key, keys] of the packed sequence that a query is of, or of all.
const sequencesOf = (problem) => problem.sequences ?? [[0, problem.seq_q, 0, problem.seq_k]];
const sequenceAt = (problem, i) => sequencesOf(problem).findIndex(([first, queries]) => first <= i && i < first + queries);

// The end of the keys that a query sees, as far as they are not hidden by a block mask; none if it is not behind firstKey().
function visibleKeys(problem, i) {
  const [firstQuery, queries, firstKey, keys] = sequencesOf(problem)[sequenceAt(problem, i)] ?? [i, 1, 0, 0];
  return firstKey + (problem.causal ? Math.min(Math.max(i - firstQuery + keys - queries + 1, 0), keys) : keys);
}
const firstKey = (problem, i) => sequencesOf(problem)[sequenceAt(problem, i)]?.[2] ?? 0;

// Frames around sequences; and under a causal mask which keys a query sees, as a line: left of it is what counts.
function drawEdges(side, picture, left, top, across, down) {
  const { problem } = side;
  for (const [firstQuery, queries, first, keys] of problem.sequences ?? [])
    if (queries && keys) svg(picture, "rect", { class: "sequence", x: left + first * across, y: top + firstQuery * down, width: keys * across, height: queries * down });
  if (!problem.causal) return;
  let path = "";
  for (const [firstQuery, queries] of sequencesOf(problem))
    for (let i = firstQuery; i < firstQuery + queries; i++)
      path += `${i > firstQuery ? "L" : "M"}${left + visibleKeys(problem, i) * across} ${top + i * down}V${top + (i + 1) * down}`;
  svg(picture, "path", { class: "edge", d: path });
}

// --- Numbers of a tile ---

const tileNumbers = { S: "S, scale · Q Kᵀ", P: "P", dP: "dP, dO Vᵀ", dS: "dS, P ∘ (dP − δ)" };
const shownAnywhere = (side, names) => names.filter((name) => side.steps().some((step) => step.watched?.[name]));

// [[numbers of a query]] as they are at this step; undefined where there are none yet.
function numbersOf(side, name, tile) {
  const first = tile.head * side.problem.seq_q;
  const numbers = [];
  for (let i = tile.queries[0]; i <= tile.queries[1]; i++) {
    const line = new Array(tile.keys[1] - tile.keys[0] + 1);
    for (const step of side.stepsSoFar())
      for (const [column, values] of shownInRow(step, name, first + i))
        values.forEach((x, c) => { if (tile.keys[0] <= column + c && column + c <= tile.keys[1]) line[column + c - tile.keys[0]] = x; });
    numbers.push(line);
  }
  return numbers;
}

function drawTile(side) {
  const place = side.part("tile");
  place.replaceChildren();
  const names = shownAnywhere(side, Object.keys(tileNumbers));
  side.part("tile-choice").hidden = !names.length;
  const at = side.tile ?? side.tileNow();
  const tile = side.block().tiles[at];
  side.part("follow").hidden = side.tile === null;
  if (!names.length) {
    element(place, "p", withoutNumbers(side) ? "This page was made without numbers." : "This kernel shows no numbers of its tiles.", { class: "note" });
    return;
  }
  if (!names.includes(side.numbers)) {
    side.numbers = names.includes("P") ? "P" : names[0];
    side.part("tile-numbers").replaceChildren();
    for (const name of names) element(side.part("tile-numbers"), "option", tileNumbers[name], { value: name });
    side.part("tile-numbers").value = side.numbers;
  }
  if (!tile) {
    element(place, "p", "No tile yet.", { class: "note" });
    return;
  }
  element(place, "p", `${capital(headName(side, tile.head))}, ${tileWords(tile)}.`);
  if (!side.part("tile-open").open) return; // thousands of numbers: only if they are seen
  const numbers = numbersOf(side, side.numbers, tile);
  if (numbers.every((line) => line.every((x) => x === undefined))) {
    element(place, "p", `${side.numbers} of this tile is not complete yet.`, { class: "note" });
    return;
  }
  const seen = numbers.map((line, i) => line.map((x, j) => (tile.keys[0] + j < visibleKeys(side.problem, tile.queries[0] + i) ? x : undefined)));
  const most = Math.max(...seen.flat().map((x) => (Number.isFinite(x) ? Math.abs(x) : 0)), 1e-30);
  const columns = [...numbers[0].keys()].map((j) => `key ${tile.keys[0] + j}`);
  const body = table(place, `${side.numbers} of this tile, a row for each query; a dot where the mask hides the key`, ["query", ...columns]);
  body.closest(".scroll").classList.add("numbers");
  numbers.forEach((line, i) => {
    const row = element(body, "tr");
    element(row, "th", String(tile.queries[0] + i), { scope: "row" });
    line.forEach((x, j) => {
      const cell = element(row, "td", seen[i][j] === undefined ? (x === undefined ? "–" : "·") : shown(x));
      if (Number.isFinite(seen[i][j])) paint(cell, Math.abs(x) / most);
    });
  });
}
