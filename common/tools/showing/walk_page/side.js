// One walk, and what of it is looked at. A page has one or two of them, each with its own copy of the template.

class Side {
  constructor(walk, name) {
    this.walk = walk;
    this.problem = walk.problem;
    this.name = name; // empty if it is the only one
    for (const launch of walk.launches) for (const block of launch.blocks) complete(block.steps, launch);
    this.root = document.getElementById("side").content.firstElementChild.cloneNode(true);
    for (const place of this.root.querySelectorAll("[aria-label]"))
      if (name) place.setAttribute("aria-label", `${place.getAttribute("aria-label")}, ${name}`);
    if (name && walk.opening.alone) walk.opening = { block: 0 }; // beside another walk all its launches are told
    this.launchAt = walk.opening.launch ?? Math.max(walk.launches.findLastIndex((launch) => launch.blocks.some((block) => block.tiles.length)), 0);
    this.blockAt = 0;
    this.story = null; // of all launches, if that is looked at
    this.step = 0;
    this.row = null; // chosen row: "q17", "k5"
    this.thread = 0; // whose scores are shown
    this.tile = null; // chosen tile: a number; null while the walk's own is shown
    this.numbers = null; // which of a tile's numbers
  }

  part(name) { return this.root.querySelector(`[data-part="${name}"]`); }
  launch() { return this.walk.launches[this.launchAt]; }
  blocks() { return this.launch().blocks; }
  block() { return this.story ?? this.blocks()[this.blockAt]; }
  steps() { return this.block().steps; }
  stepsSoFar() { return this.steps().slice(0, this.step + 1); }

  // The last tile that the party of this step, or else the block, had in its hands by then, or -1.
  tileNow() {
    const party = this.tileOf(String(this.steps()[this.step].by));
    return party < 0 ? this.block().tiles.findLastIndex((tile) => tile.step <= this.step) : party;
  }
  tileOf(party) {
    return this.block().tiles.findLastIndex((tile) => tile.step <= this.step && String(this.steps()[tile.step].by) === party);
  }
  tilesSoFar() { return this.block().tiles.filter((tile) => tile.step <= this.step); }
  work(i, until = undefined) { return this.steps().slice(0, until).reduce((sum, step) => sum + step.work[i], 0); }
}

// What is left out of a step because it follows from the others, and the names of what it waits for.
function complete(steps, launch) {
  steps.forEach((step, i) => {
    step.at ??= i;
    step.gates = launch.mbarriers;
    step.names = launch.names;
    step.launch = launch;
    step.places = launch.places;
    for (const [, tensor, ranges] of step.uses ?? []) ((step.used ??= {})[tensor] ??= []).push(...ranges);
  });
}

// --- Numbers: rectangles [first row, rows, first column, columns, the upper three bytes of fp32 in base64], unpacked when they are asked for ---

const unpacked = new Map();
function floats(packed) {
  if (!unpacked.has(packed)) {
    const raw = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const whole = new Uint8Array(raw.length / 3 * 4);
    for (let i = 0; i < raw.length; i++) whole[i + Math.floor(i / 3) + 1] = raw[i];
    unpacked.set(packed, new Float32Array(whole.buffer));
  }
  return unpacked.get(packed);
}

const withoutNumbers = (side) => !side.walk.numbers; // left out on request

// What a step showed under a name in a row: [[first column, values]].
function shownInRow(step, name, row) {
  const found = [];
  for (const [first, count, column, columns, packed] of step.watched?.[name] ?? [])
    if (first <= row && row < first + count) found.push([column, [...floats(packed).subarray((row - first) * columns, (row - first + 1) * columns)]]);
  return found;
}
const shownNumber = (step, name, row) => shownInRow(step, name, row)[0]?.[1][0];

// [first column, values] of the newest step in which there is something of this row.
function newest(side, name, row) {
  const found = side.stepsSoFar().map((step) => shownInRow(step, name, row)).findLast((runs) => runs.length);
  return found && [found[0][0], found.flatMap(([, values]) => values)];
}
