// Search finds lessons before other pages, and these before code; each result gets a line of the page in which the words stand.

const query = () => (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/[^\p{Letter}\p{Number}_]+/u).filter(Boolean);

// Sphinx asks it for each result: the higher, the earlier.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const kind = /\.(cu|cc|h|py|diff)$/.test(page) ? 0 : /^\d\d_\w+\/index$/.test(page) ? 2 : 1;
    const often = query().map((word) => (EXCERPTS[page] || "").toLowerCase().split(word).length - 1);
    return 1000 * kind + score + Math.min(100, 5 * Math.min(...often));
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: {}, objPrioDefault: 0, title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};

function line(text, words) {
  const places = [words.join(" "), ...words].map((each) => text.search(new RegExp(`(?<!\\p{Letter})${each}`, "iu")));
  const found = places[0] >= 0 ? places.slice(0, 1) : places.filter((place) => place >= 0); // the words together, or one of them
  const begin = found.length ? Math.max(0, text.lastIndexOf(" ", Math.max(0, Math.min(...found) - 60))) : 0;
  const end = text.indexOf(" ", begin + 150);
  return (begin ? "… " : "") + text.slice(begin, end < 0 ? undefined : end).trim() + (end < 0 ? "" : " …");
}

function marked(text, words) {
  const pattern = new RegExp(`(${words.join("|")})`, "giu");
  return text.split(pattern).map((part, index) => index % 2 ? Object.assign(document.createElement("mark"), {textContent: part}) : part);
}

document.addEventListener("DOMContentLoaded", () => {
  const results = document.querySelector("#search-results");
  const here = location.pathname.replace(/[^/]*$/, "");
  new MutationObserver(() => {
    for (const link of results.querySelectorAll("li:not(.has-line) > a")) {
      link.parentElement.classList.add("has-line");
      const text = EXCERPTS[decodeURI(link.pathname.replace(here, "")).replace(/\.html$/, "")];
      if (!text) continue;
      const context = document.createElement("p");
      context.className = "context";
      context.append(...marked(line(text, query()), query()));
      link.after(context);
    }
  }).observe(results, {childList: true, subtree: true});
});
