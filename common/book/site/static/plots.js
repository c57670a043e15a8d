// Says what a point of a picture is, where the reader points at it, or steps through the points with the arrow keys.

for (const plot of document.querySelectorAll(".plot:has(script)")) {
  const points = JSON.parse(plot.querySelector("script").textContent);
  const image = plot.querySelector("img");
  const words = document.createElement("div");
  words.className = "plot-words";
  words.setAttribute("aria-live", "polite");
  words.hidden = true;
  plot.append(words);
  let shown = -1;

  const placeOf = (point) => {
    const narrow = image.currentSrc.endsWith(".narrow.svg");
    return [point[narrow ? 2 : 0] * image.clientWidth, point[narrow ? 3 : 1] * image.clientHeight];
  };
  const show = (index) => {
    shown = index;
    words.hidden = index < 0;
    if (words.hidden) return;
    const [x, y] = placeOf(points[index]);
    const [first, ...rest] = points[index][4].split("\n");
    words.replaceChildren(Object.assign(document.createElement("strong"), {textContent: first}), ...rest.flatMap((line) => [document.createElement("br"), line]));
    const side = x > image.clientWidth / 2 ? -words.offsetWidth - 12 : 12;
    words.style.left = `${Math.max(0, image.offsetLeft + x + side)}px`;
    words.style.top = `${image.offsetTop + Math.max(0, y - words.offsetHeight / 2)}px`;
  };
  const nearest = (event) => {
    const box = image.getBoundingClientRect();
    const far = points.map(placeOf).map(([x, y]) => Math.hypot(x - event.clientX + box.left, y - event.clientY + box.top));
    const best = far.indexOf(Math.min(...far));
    show(far[best] < 24 ? best : -1);
  };

  image.tabIndex = 0;
  image.addEventListener("pointermove", nearest);
  image.addEventListener("pointerdown", nearest);
  image.addEventListener("pointerleave", () => show(-1));
  image.addEventListener("blur", () => show(-1));
  image.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (event.key === "Escape") show(-1);
    if (!step) return;
    event.stopPropagation(); // else the page is turned
    event.preventDefault();
    show((shown + step + points.length) % points.length);
  });
}
