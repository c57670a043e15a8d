// Puts the page together: see common/tools/showing/walk.py for what the data hold.

const $ = (id) => document.getElementById(id);
const { walks } = JSON.parse($("walks").textContent);
const sides = walks.map((walk) => new Side(walk, walks.length > 1 ? walk.step : ""));
let timer = null;

const sentence = (side, step) => `${step.from ? `${step.from} ${partyName(step.by).toLowerCase()}` : partyName(step.by)} ${stepWords(side, step)}`;

function drawSide(side) {
  side.part("says").textContent = `${side.name ? `Step ${side.step + 1} of ${side.steps().length}. ` : ""}${sentence(side, side.steps()[side.step])}`;
  for (const [i, item] of [...side.part("steps").children].entries())
    i === side.step ? item.setAttribute("aria-current", "step") : item.removeAttribute("aria-current");
  drawScores(side, (tile) => { side.tile = tile; side.part("tile-open").open = true; drawSide(side); });
  drawTile(side);
  drawMatrices(side);
  drawPlaces(side);
  drawParties(side);
  drawBytes(side);
  drawValues(side);
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
  sides.forEach(drawSide);
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
  side.part("schedule-section").hidden = side.blocks().length === 1;
  const choices = [...side.part("processors").options].map((option) => Number(option.value));
  side.part("processors").value = choices.findLast((n) => 2 * n <= side.blocks().length) ?? 1;
  drawBlocks(side, (block) => startAgain(() => enterBlock(side, block)));
  enterBlock(side, block);
}

function startAgain(enter) {
  enter();
  drawSchedules(sides);
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
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, input, summary, .scroll")) return;
  const does = { ArrowRight: () => go(clock.at + 1), ArrowLeft: () => go(clock.at - 1), Home: () => go(0),
                 End: () => go(clock.ticks.length - 1), " ": event.target.closest("button") ? null : toggle }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
}

function open(side) {
  $("sides").append(side.root);
  side.root.classList.toggle("waiting", side.walk.launches.some((launch) => launch.mbarriers.length));
  side.part("name").textContent = `${side.walk.step}, ${side.walk.direction}`;
  side.part("problem").textContent = `${side.walk.words}${side.walk.rope ? ", with RoPE" : ""}${side.walk.note && `. ${side.walk.note}`}`;
  side.part("name").hidden = !side.name;
  side.walk.launches.forEach((launch, i) => element(side.part("launch"), "option", `${i + 1}: ${launch.kernel.replace(/<.*/, "").replace(/.*::/, "")}`, { value: i }));
  side.part("launches").hidden = side.walk.launches.length === 1;
  const shows = (launch) => launch.blocks.some((block) => block.steps.some((step) => step.watched));
  side.part("all-launches").checked =
    side.walk.launches.length > 1 &&
    (side.name || side.walk.direction === "forward" || (!shows(side.launch()) && side.walk.launches.some(shows)));
  side.part("all-launches").addEventListener("change", () => startAgain(() => enterBlock(side, side.blockAt)));
  side.part("launch").value = side.launchAt;
  side.part("launch").addEventListener("change", () => startAgain(() => enterLaunch(side, Number(side.part("launch").value))));
  side.part("row").addEventListener("change", () => { side.row = side.part("row").value; drawValues(side); });
  side.part("tile-numbers").addEventListener("change", () => { side.numbers = side.part("tile-numbers").value; drawTile(side); });
  side.part("tile-open").addEventListener("toggle", () => drawTile(side));
  side.part("follow").addEventListener("click", () => { side.tile = null; drawSide(side); });
  side.part("processors").addEventListener("change", () => drawSchedules(sides));
  const { queries, keys } = side.blocks()[0].tiles[0] ?? { queries: [0, 63], keys: [0, 63] };
  side.part("tile-open").open = (queries[1] - queries[0] + 1) * (keys[1] - keys[0] + 1) <= 64; // more are many to draw
  makeMatrices(side);
  enterLaunch(side, side.launchAt, side.walk.start);
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
startAgain(() => sides.forEach(open));
