// Puts the page together: see common/tools/showing/walk.py for what the data hold.

const $ = (id) => document.getElementById(id);
const { walks } = JSON.parse($("walks").textContent);
const sides = walks.map((walk) => new Side(walk, walks.length > 1 ? walk.step : ""));
let timer = null;

const sentence = (side, step) => `${step.from ? `${step.from} ${partyName(step.by).toLowerCase()}` : partyName(step.by)} ${stepWords(side, step)}`;

// The sentence of what to watch stays, and is about one block.
function drawElsewhere(side) {
  const { launch = side.launchAt, block } = side.walk.opening, here = `block ${side.blockAt}${launch === side.launchAt ? "" : ` of launch ${side.launchAt + 1}`}`;
  const there = `block ${block}${launch === side.launchAt ? "" : ` of launch ${launch + 1}`}`;
  side.part("elsewhere").textContent = here === there ? "" : `That is about ${there}; what you see below is ${here}.`;
}

function drawSide(side) {
  drawElsewhere(side);
  drawNow(side);
  for (const [i, item] of [...side.part("steps").children].entries())
    i === side.step ? item.setAttribute("aria-current", "step") : item.removeAttribute("aria-current");
  drawScores(side, (tile) => { side.tile = tile; side.part("tile-open").open = true; drawSide(side); });
  drawTile(side);
  drawMatrices(side);
  drawPlaces(side);
  drawParties(side);
  drawBytes(side);
  drawValues(side);
  drawOwners(side);
}

const clock = new Clock(sides);

function go(tick) {
  clock.go(tick);
  $("scrub").max = clock.ticks.length;
  $("scrub").value = clock.at + 1;
  $("scrub").setAttribute("aria-valuetext", clock.words());
  $("number").textContent = clock.words();
  $("first").disabled = $("back").disabled = clock.at === 0;
  $("last").disabled = $("forward").disabled = clock.atEnd();
  document.body.classList.toggle("at-opening", !clock.ofLaunch && sides.every(isAtOpening));
  if (!clock.ofLaunch) return sides.forEach(drawSide);
  const most = Math.max(...sides.map((side) => endOf(planOf(side))));
  for (const side of sides) drawLaunch(side, Math.min(clock.ticks[clock.at], endOf(planOf(side))), most);
}

// One block, or the launch as a whole.
function show(ofLaunch) {
  clock.ofLaunch = ofLaunch;
  document.body.classList.toggle("of-launch", ofLaunch);
  $("view-block").setAttribute("aria-pressed", !ofLaunch);
  $("view-launch").setAttribute("aria-pressed", ofLaunch);
  clock.restart();
  go(clock.at);
}

function goInto(side, block) {
  pause();
  enterBlock(side, block);
  show(false);
  side.part("blocks").children[block].focus();
}

// Where most is to be seen.
function open(side) {
  const { launch, block, row } = side.walk.opening;
  if (launch !== undefined && launch !== side.launchAt) enterLaunch(side, launch, block);
  else enterBlock(side, block);
  if (row && [...side.part("row").options].some((option) => option.value === row)) side.part("row").value = side.row = row;
}
const isAtOpening = (side) => side.walk.opening.step === undefined || (side.launchAt === (side.walk.opening.launch ?? side.launchAt) && side.blockAt === side.walk.opening.block && side.step === openingStep(side));

// -1 is the last one.
const openingStep = (side) => (side.walk.opening.step < 0 ? side.steps().length - 1 : side.walk.opening.step ?? 0);

function openAll() {
  sides.forEach(open);
  const ofLists = sides.some(({ problem }) => problem.sequences || problem.listed); // who takes what is seen in the launch as a whole
  show(ofLists);
  go(ofLists ? clock.ticks.length - 1 : Math.max(...sides.map(openingStep)));
}

function enterBlock(side, block) {
  side.blockAt = block;
  side.story = side.part("all-launches").checked ? storyOf(side.walk.launches, side.launchAt, block) : null;
  side.row = side.tile = null;
  markBlock(side);
  fillRows(side);
  side.part("steps").replaceChildren();
  for (const step of side.steps()) element(side.part("steps"), "li", sentence(side, step));
}

function enterLaunch(side, launch, block = 0) {
  side.launchAt = launch;
  const choices = [...side.part("processors").options].map((option) => Number(option.value));
  side.part("processors").value = choices.findLast((n) => 2 * n <= side.blocks().length) ?? 1;
  drawBlocks(side, (block) => startAgain(() => enterBlock(side, block)));
  enterBlock(side, block);
}

function startAgain(enter) {
  enter();
  clock.restart();
  go(0);
}

function pause() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
}

function play() {
  if (clock.atEnd()) go(0);
  $("play").textContent = "Pause";
  timer = setInterval(() => {
    go(clock.at + 1);
    if (clock.atEnd()) pause();
  }, Number($("speed").value));
}

const toggle = () => (timer ? pause() : play());

function onKey(event) {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, input, summary, .scroll, pre")) return;
  const does = { ArrowRight: () => go(clock.at + 1), ArrowLeft: () => go(clock.at - 1), Home: () => go(0),
                 End: () => go(clock.ticks.length - 1), " ": event.target.closest("button, [role=button]") ? null : toggle }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
}

function make(side) {
  $("sides").append(side.root);
  side.root.classList.toggle("by-thread", Boolean(side.walk.opening.alone));
  side.root.classList.toggle("waiting", side.walk.launches.some((launch) => launch.mbarriers.length));
  side.part("name").textContent = `${side.walk.step}, ${side.walk.direction}`;
  side.part("problem").textContent = `${side.walk.words}${side.walk.rope ? ", with RoPE" : ""}${side.walk.note && `. ${side.walk.note}`}`;
  side.part("problem").title = "B: sequences, H: heads, Hkv: heads of keys and values, N: queries and keys, D: numbers in a row of Q, K, V and O";
  side.part("name").hidden = !side.name;
  side.walk.launches.forEach((launch, i) => element(side.part("launch"), "option", `${i + 1}: ${launch.kernel.replace(/<.*/, "").replace(/.*::/, "")}`, { value: i }));
  side.part("launches").hidden = side.part("launch-label").hidden = side.walk.launches.length === 1;
  const shows = (launch) => launch.blocks.some((block) => block.steps.some((step) => step.watched));
  side.part("all-launches").checked =
    !(side.walk.opening.alone && !side.name) && side.walk.launches.length > 1 &&
    (side.name || side.walk.direction === "forward" || (!shows(side.launch()) && side.walk.launches.some(shows)));
  side.part("all-launches").addEventListener("change", () => startAgain(() => enterBlock(side, side.blockAt)));
  side.part("launch").addEventListener("change", () => startAgain(() => enterLaunch(side, Number(side.part("launch").value))));
  side.part("row").addEventListener("change", () => { side.row = side.part("row").value; drawValues(side); });
  side.part("tile-numbers").addEventListener("change", () => { side.numbers = side.part("tile-numbers").value; drawTile(side); });
  side.part("tile-open").addEventListener("toggle", () => drawTile(side));
  side.part("follow").addEventListener("click", () => { side.tile = null; drawSide(side); });
  side.part("processors").addEventListener("change", () => show(true));
  side.part("thread").addEventListener("input", () => { side.thread = Math.max(Math.trunc(Number(side.part("thread").value)) || 0, 0); drawOwners(side); });
  side.part("show-me").addEventListener("click", openAll);
  side.part("what").textContent = side === sides[0] ? whatIsWhat(side) : "";
  side.part("watch-line").hidden = !side.walk.opening.watch;
  side.part("watch").textContent = side.walk.opening.watch ?? "";
  const { queries, keys } = side.blocks()[0].tiles[0] ?? { queries: [0, 63], keys: [0, 63] };
  side.part("tile-open").open = (queries[1] - queries[0] + 1) * (keys[1] - keys[0] + 1) <= 64; // more are many to draw
  makeMatrices(side);
  side.part("launch").value = side.launchAt;
  enterLaunch(side, side.launchAt, side.walk.opening.block);
}

// Of two, one may have nothing that stands out: then it shows the other's row, if it has it.
function shareOpening(sides) {
  const one = sides.find((side) => side.walk.opening.row);
  for (const side of sides)
    if (one && !side.walk.opening.row && side.problem.seq_q === one.problem.seq_q) {
      const row = Number(one.walk.opening.row.slice(1)), head = Math.floor(row / side.problem.seq_q), query = row % side.problem.seq_q;
      const block = side.blocks().findIndex(({ tiles }) => tiles.some((tile) => tile.head === head && tile.queries[0] <= query && query <= tile.queries[1]));
      if (block >= 0) Object.assign(side.walk.opening, { block, row: one.walk.opening.row });
    }
}

// In a lesson's frame (#embed): what shows the idea, and the rest behind a button; in a narrow frame a still, and a link.
function embed() {
  const embedded = location.hash === "#embed";
  document.documentElement.classList.toggle("embedded", embedded);
  $("still").href = location.href.replace(/#.*/, "");
  $("more").addEventListener("click", () => document.documentElement.classList.remove("embedded"));
}

$("sides").classList.toggle("two", sides.length > 1);
$("unit-label").hidden = sides.length === 1;
$("about-parties").hidden = !sides.some((side) => side.walk.launches.some((launch) => launch.mbarriers.length));
$("unit").addEventListener("change", () => { clock.unit = $("unit").value; clock.restart(); go(0); });
$("scrub").addEventListener("input", () => go(Number($("scrub").value) - 1));
$("first").addEventListener("click", () => go(0));
$("back").addEventListener("click", () => go(clock.at - 1));
$("forward").addEventListener("click", () => go(clock.at + 1));
$("last").addEventListener("click", () => go(clock.ticks.length - 1));
$("play").addEventListener("click", toggle);
$("speed").addEventListener("change", () => timer && (pause(), play()));
document.addEventListener("keydown", onKey);
$("view-block").addEventListener("click", () => show(false));
$("view-launch").addEventListener("click", () => show(true));
addEventListener("resize", () => clock.ofLaunch && go(clock.at));
sides.forEach(make);
shareOpening(sides);
openAll();
embed();
