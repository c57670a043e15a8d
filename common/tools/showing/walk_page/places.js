// Places in shared memory that bulk copies fill, and what is in them.

function drawPlaces(side) {
  const { places } = side.launch();
  side.part("places-section").hidden = !places.length || side.story;
  const there = side.part("places");
  there.replaceChildren();
  if (side.part("places-section").hidden) return;
  const now = side.steps()[side.step];
  const order = [...places.keys()].sort((a, b) => places[a][0] - places[b][0]);
  for (const place of order) {
    const [kind, words] = stateOf(side, place);
    const used = now.uses?.some(([which]) => which === place);
    const item = element(there, "li", undefined, { class: used ? `${kind} used` : kind });
    element(item, "strong", places[place][2]);
    element(item, "span", words);
    if (used) element(item, "em", `in use by ${partyName(now.by).toLowerCase()}`);
  }
}

// [class, words] of a place at this step.
function stateOf(side, place) {
  let content, state = "empty";
  for (const step of side.stepsSoFar()) {
    if (state === "away" && step.after?.some(({ on, phase }) => on === content[3] && phase === content[4])) state = "there";
    const fill = step.fills?.find(([which]) => which === place);
    if (fill) [content, state] = [fill, "away"];
    if (step.writes?.includes(place)) state = "over";
  }
  if (!content) return [state, state === "over" ? "written by threads" : "empty"];
  const [, tensor, ranges] = content;
  const so = { away: ", on their way", there: "", over: "; written over by threads" }[state];
  return [state, `${rangeWords(side, tensor, ranges)} of ${tensor}${so}`];
}
