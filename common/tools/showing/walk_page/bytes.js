// Bytes so far; and what chapter 01 would have moved for as many scores.

const measures = ["Global memory, asked through L2", "of it, new to this block", "of it, new to the launch (DRAM)", "Shared memory"];

// Which part of all scores the block has come to. Its tile counts as soon as it is there.
function partOfScores(side) {
  const { batch, heads, seq_q, seq_k } = side.problem;
  const done = side.block().tiles.slice(0, side.tileNow() + 1);
  const area = done.reduce((sum, { queries, keys }) => sum + (queries[1] - queries[0] + 1) * (keys[1] - keys[0] + 1), 0);
  return area / (batch * heads * seq_q * seq_k);
}

function drawBytes(side) {
  const place = side.part("bytes");
  place.replaceChildren();
  const { naive } = side.walk;
  const body = table(place, "Global memory in sectors of 32 bytes", ["What", "this step", "so far", "in the end", ...(naive ? ["01 by then"] : [])]);
  measures.forEach((name, i) => {
    const line = element(body, "tr");
    element(line, "th", name, { scope: "row" });
    for (const n of [side.steps()[side.step].work[i], side.work(i, side.step + 1), side.work(i)]) element(line, "td", bytes(n));
    if (naive) element(line, "td", i === 1 ? "–" : bytes(naive[i] * partOfScores(side)));
  });
  const total = (i) => side.walk.launches.flatMap((launch) => launch.blocks).flatMap((block) => block.steps).reduce((sum, step) => sum + step.work[i], 0);
  element(place, "p", `The whole run, all blocks of ${several(side.walk.launches.length, "launch").replace("launchs", "launches")}: ` +
          `${bytes(total(0))} through L2, ${bytes(total(2))} from or to DRAM if L2 holds all.`, { class: "note" });
  if (naive)
    element(place, "p", `Chapter 01 moves ${bytes(naive[0])} through L2 for this problem. “01 by then” is its share for as many scores as this block has come to: ` +
            `${(100 * partOfScores(side)).toPrecision(3)}% of all.`, { class: "note" });
}
