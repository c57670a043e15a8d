// Bytes so far; and what chapter 01 would have moved for as many scores.

const measures = ["Global memory, asked through L2", "of it, new to this block", "of it, new to the launch (DRAM)", "Shared memory"];

// Which part of all scores the block has come to, each counted once. A tile counts as soon as it is there.
function partOfScores(side) {
  const { batch, heads, seq_q, seq_k } = side.problem;
  const done = new Map(); // of each head
  for (const { head, queries, keys } of side.tilesSoFar()) {
    if (!done.has(head)) done.set(head, new Uint8Array(seq_q * seq_k));
    for (let i = queries[0]; i <= queries[1]; i++) done.get(head).fill(1, i * seq_k + keys[0], i * seq_k + keys[1] + 1);
  }
  return [...done.values()].reduce((sum, scores) => sum + scores.reduce((a, b) => a + b, 0), 0) / (batch * heads * seq_q * seq_k);
}

function drawBytes(side) {
  const place = side.part("bytes");
  place.replaceChildren();
  const { naive } = side.walk;
  const part = naive && partOfScores(side);
  const body = table(place, "Global memory in sectors of 32 bytes", ["What", "this step", "so far", "in the end", ...(naive ? ["01 by then"] : [])]);
  measures.forEach((name, i) => {
    const line = element(body, "tr");
    element(line, "th", name, { scope: "row" });
    for (const n of [side.steps()[side.step].work[i], side.work(i, side.step + 1), side.work(i)]) element(line, "td", bytes(n));
    if (naive) element(line, "td", i === 1 ? "–" : bytes(naive[i] * part));
  });
  const every = side.walk.launches.flatMap((launch) => launch.blocks).flatMap((block) => block.steps);
  const total = (i) => every.reduce((sum, step) => sum + step.work[i], 0);
  element(place, "p", `The whole run, all blocks of ${side.walk.launches.length === 1 ? "the launch" : `${side.walk.launches.length} launches`}: ` +
          `${bytes(total(0))} through L2, ${bytes(total(2))} from or to DRAM if L2 holds all.`, { class: "note" });
  if (naive)
    element(place, "p", `Chapter 01 moves ${bytes(naive[0])} through L2 for this problem. “01 by then” is its share for the scores so far: ` +
            `${(100 * part).toPrecision(3)}% of all.`, { class: "note" });
}
