// What a block rests on and what rests on it, as one block: the blocks of earlier launches that wrote what it reads, and of later ones
// that read what it wrote, launch by launch. So a kernel that leaves scores in memory can be followed to its end.

function touched(block, moves, into = new Set()) {
  for (const step of block.steps)
    for (const move of moves)
      for (const [tensor, ranges] of Object.entries(step[move] ?? {}))
        for (const [first, last] of ranges) for (let row = first; row <= last; row++) into.add(`${tensor} ${row}`);
  return into;
}

const meets = (block, moves, rows) => [...touched(block, moves)].some((row) => rows.has(row));

function storyOf(launches, launchAt, blockAt) {
  const reads = ["read", "landed"], chosen = launches[launchAt].blocks[blockAt];
  const parts = [[launchAt, chosen]];
  const needed = touched(chosen, reads), made = touched(chosen, ["written"]);
  for (let i = launchAt - 1; i >= 0; i--) {
    const found = launches[i].blocks.filter((block) => meets(block, ["written"], needed));
    parts.unshift(...found.map((block) => [i, block]));
    for (const block of found) touched(block, reads, needed);
  }
  for (let i = launchAt + 1; i < launches.length; i++) {
    const found = launches[i].blocks.filter((block) => meets(block, reads, made));
    parts.push(...found.map((block) => [i, block]));
    for (const block of found) touched(block, ["written"], made);
  }
  const story = { steps: [], tiles: [], skipped: chosen.skipped };
  for (const [i, block] of parts) {
    const before = story.steps.length;
    story.tiles.push(...block.tiles.map((tile) => ({ ...tile, step: tile.step + before })));
    const later = story.steps.length ? story.steps.at(-1).at + 1 : 0;
    const moved = (after) => after?.map((each) => ({ ...each, steps: each.steps?.map((step) => step + before) }));
    const from = `Launch ${i + 1}, block ${launches[i].blocks.indexOf(block)}:`;
    story.steps.push(...block.steps.map((step) => ({ ...step, from, at: step.at + later, after: moved(step.after) })));
  }
  return story;
}
