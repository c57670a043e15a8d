// Which thread makes which scores of a tile, and what it needs for them.

function drawOwners(side) {
  const launch = [side.launch(), ...side.walk.launches].find((each) => each.owners);
  const owners = launch?.owners;
  side.part("owners-section").hidden = !owners;
  if (!owners) return;
  const [first, high, column, wide, packed] = owners;
  const raw = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const threads = new Uint16Array(raw.buffer), most = Math.max(...threads);
  const choice = side.part("thread");
  choice.max = most;
  side.thread = Math.min(side.thread, most);
  choice.value = side.thread;
  const cells = [...threads.keys()].filter((at) => threads[at] === side.thread).map((at) => [Math.floor(at / wide), at % wide]);
  const own = (axis) => [...new Set(cells.map((cell) => cell[axis]))].sort((a, b) => a - b);
  const [queries, keys] = [own(0), own(1)];

  const picture = side.part("owners"), left = 58, top = 58, size = 320, cell = size / Math.max(high, wide);
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${left + wide * cell + 4} ${top + high * cell + 4}`);
  svg(picture, "rect", { class: "frame", x: left, y: top, width: wide * cell, height: high * cell });
  svg(picture, "rect", { class: "frame", x: 18, y: top, width: left - 26, height: high * cell });
  svg(picture, "rect", { class: "frame", x: left, y: 18, width: wide * cell, height: top - 26 });
  svg(picture, "text", { x: 18, y: top - 6 }, "Q");
  svg(picture, "text", { x: left - 16, y: 30 }, "K");
  for (const query of queries) svg(picture, "rect", { class: "read", x: 18, y: top + query * cell, width: left - 26, height: cell });
  for (const key of keys) svg(picture, "rect", { class: "landed", x: left + key * cell, y: 18, width: cell, height: top - 26 });
  for (const [i, j] of cells) svg(picture, "rect", { class: "whole", x: left + j * cell, y: top + i * cell, width: cell, height: cell });

  const flops = launch.blocks.some((block) => block.steps.some((step) => step.work[4]));
  const chunk = launch.blocks[0].steps.map((step) => partOfRow(side, step, "K")).find(Boolean);
  const whole = queries.length * keys.length === cells.length;
  const need = flops ? " The tensor cores multiply for the whole warp; the thread only holds these sums." :
    !whole ? "" : cells.length === 1 ? ` For each column it loads one number of Q and one of K: two loads for one multiply-add.` :
    ` For each column of Q and K it loads ${several(queries.length, "number")} of Q and ${keys.length} of K into registers, and makes ` +
    `${queries.length} × ${keys.length} = ${cells.length} multiply-adds of these ${queries.length + keys.length}.`;
  side.part("owners-words").textContent = `Thread ${side.thread} of ${launch.block.reduce((a, b) => a * b)} makes ${several(cells.length, "score")} of the tile of ` +
    `${high} ${high === 1 ? "query" : "queries"} and ${several(wide, "key")}${cells.length > 1 ? ", and keeps them in its registers" : ""}.${need}` +
    (chunk ? ` Shared memory holds a chunk of Q and K at a time: ${chunk}, then the next; the ${several(cells.length, "sum")} stay${cells.length > 1 ? "" : "s"} in registers.` : "");
  picture.setAttribute("aria-label", side.part("owners-words").textContent);
}
