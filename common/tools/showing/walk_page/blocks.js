// The grid of thread blocks.

function drawBlocks(side, choose) {
  const { grid, block: threads, kernel } = side.launch();
  const most = Math.max(1, ...side.blocks().map((block) => block.tiles.length));
  const place = side.part("blocks");
  side.part("about-blocks").textContent = `${kernel}: a grid of ${grid.join(" × ")} blocks of ${threads.reduce((a, b) => a * b)} threads. ` +
    "The number in a square, and the depth of its blue, is how many tiles the block computes.";
  place.replaceChildren();
  side.blocks().forEach((block, i) => {
    const words = blockWords(side, block);
    const button = element(place, "button", String(block.tiles.length),
                           { type: "button", role: "radio", "aria-label": capital(words), title: capital(words) });
    paint(button, block.tiles.length / most);
    const tell = (which) => (side.part("about-block").textContent = `${capital(blockWords(side, which))}.`);
    button.addEventListener("click", () => choose(i));
    for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => tell(block));
    button.addEventListener("mouseleave", () => tell(side.blocks()[side.blockAt]));
  });
  place.onkeydown = (event) => {
    const turn = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!turn) return;
    const count = side.blocks().length;
    choose((side.blockAt + turn + count) % count);
    place.children[side.blockAt].focus();
    event.preventDefault();
  };
}

function markBlock(side) {
  [...side.part("blocks").children].forEach((button, i) => {
    button.setAttribute("aria-checked", i === side.blockAt);
    button.tabIndex = i === side.blockAt ? 0 : -1;
  });
  side.part("about-block").textContent = `${capital(blockWords(side, side.blocks()[side.blockAt]))}.`;
}
