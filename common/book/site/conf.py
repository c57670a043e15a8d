"""How Sphinx makes the site; its sources are written by common/tools/showing/book_pages.py."""

import json
import re
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes
from latex2mathml.converter import convert

HERE = Path(__file__).parent
CODE = (".cu", ".cc", ".h", ".py", ".diff")  # pages whose names end so are code
DESCRIPTION = 200  # characters, at most
SEARCH = "Looks for words in all lessons, pages and kernels of the workbook, and shows the lines where they stand."

project = "The FlashAttention workbook"
root_doc = "index"
language = "en"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

highlight_language = "none"
smartquotes = False  # m' is the next m

html_theme = "furo"
html_title = project
html_static_path = [str(HERE / "static")]
html_css_files = ["book.css"]
html_favicon = str(HERE / "static" / "favicon.svg")
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # which a page on the disk may not read: static/search.js has another
html_context = {"made_by": Path(__file__).read_text()}  # Sphinx writes every page again when a value changes, not when code does
html_show_copyright = False
html_math_renderer = "mathml"
html_theme_options = {
    "navigation_with_keys": True,
    "dark_css_variables": {"color-foreground-muted": "#8d9299"},  # Furo's has too little contrast
}


def _mathml(display: str):
    """Browsers draw MathML themselves."""

    def visit(translator, node: nodes.Node) -> None:
        formula = convert(node.astext(), display=display)
        translator.body.append(f'<div class="formula">{formula}</div>' if display == "block" else formula)
        raise nodes.SkipNode

    return visit, None


def _scripts(app, page, template, context, doctree) -> None:
    """A page with plots gets the script that says what is in them; the page of search its own."""
    if '<div class="plot">' in context.get("body", ""):
        app.add_js_file("plots.js", loading_method="defer")
    if page == "search":
        app.add_js_file("excerpts.js")
        app.add_js_file("search.js")


def _neighbours(app, page, template, context, doctree) -> None:
    """What is next is what the page says, if it does: for Sphinx a lesson's code stands between it and the next one."""
    said = context.get("meta") or {}
    for key, word in (("prev", "previous"), ("next", "next")):
        if word in said:
            title = app.env.titles.get(said[word])
            context[key] = {"link": app.builder.get_relative_uri(page, said[word]),
                            "title": escape(title.astext())} if title else None


def _level(app, page, template, context, doctree) -> None:
    """Sphinx calls the captions beside the page headings, and leaves out of which level."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


# --- What others show of a page -----------------------------------------------------------------------------------------


def _description(said: dict, doctree: "nodes.document | None") -> str:
    """What the page says of itself, or its first sentences."""
    text = said.get("description") or next((paragraph.astext() for paragraph in doctree.findall(nodes.paragraph)
                                            if len(paragraph.astext()) > 60), "") if doctree else ""
    text = " ".join(text.split())
    if len(text) <= DESCRIPTION:
        return text
    sentence = re.match(rf"(.{{60,{DESCRIPTION - 1}}}[.?!]) ", text)
    return sentence[1] if sentence else text[:DESCRIPTION - 2].rpartition(" ")[0] + " …"


def _tags(title: str, description: str, picture: str, address: "str | None", is_first: bool = False) -> str:
    named = {"og:site_name": project, "og:type": "website" if is_first else "article", "og:title": title,
             "og:description": description, "og:image": picture, "og:image:width": "1200", "og:image:height": "630",
             **({"og:url": address} if address else {})}
    return "".join(f'<meta property="{name}" content="{value}">' for name, value in named.items()
                   ) + '<meta name="twitter:card" content="summary_large_image">'


def _sharing(app, page, template, context, doctree) -> None:
    """The words and the picture that a page is shown with where somebody names its address."""
    address = app.config.html_baseurl
    picture = next(f"share/{name}.png" for name in (page.split("/")[0], "index")
                   if name == "index" or (Path(app.outdir) / "share" / f"{name}.png").exists())
    title = re.sub("<.*?>", "", context.get("title") or "Search")
    description = escape(SEARCH if page == "search" else _description(context.get("meta") or {}, doctree) or project)
    context["metatags"] = context.get("metatags", "") + f'<meta name="description" content="{description}">' + _tags(
        title if page == root_doc else f"{title} · {project}", description,
        (address or "../" * page.count("/")) + picture, context.get("pageurl"), page == root_doc)
    if page == "404" and address:  # which is shown for any address, at any depth
        context["metatags"] += f'<base href="{urlsplit(address).path or "/"}">'
        context["pageurl"] = None


def _share_walks(app) -> list[str]:
    """The same for the walks, which say themselves what they are. Returns their places."""
    out, address = Path(app.outdir), app.config.html_baseurl
    places = []
    for path in sorted(out.glob("walks/*.html")):
        place = path.relative_to(out).as_posix()
        places.append(place)
        head, title, rest = re.split("(<title>.*?</title>)", path.read_text(), maxsplit=1)
        said = re.search('<meta name="description" content="(.*?)">', head)
        if "og:title" in head or not said:
            continue
        picture = next(iter(sorted(out.glob(f"share/{path.name[:2]}_*.png"))), out / "share" / "index.png")
        url = f"{address}{place}" if address else None
        tags = _tags(f"{title[7:-8]} · {project}", said[1], (address or "../") + picture.relative_to(out).as_posix(), url)
        tags += f'<link rel="canonical" href="{url}">' if url else ""
        path.write_text(f"{head}{tags}\n{title}{rest}")
    return places


def _beside_the_pages(app, failed) -> None:
    """The words of the pages, for the page of search; and, where the site's address is known, its map."""
    if failed or app.builder.name != "html":
        return
    words = {}
    for page in sorted(app.env.found_docs):
        if page.endswith(CODE):
            words[page] = app.env.metadata[page].get("description", "")
        else:
            words[page] = " ".join(" ".join(node.astext().split())
                                   for node in app.env.get_doctree(page).findall(nodes.paragraph)
                                   if not isinstance(node.parent, (nodes.entry, nodes.container))
                                   and not any(node.findall(nodes.image)))
    walks = _share_walks(app)
    static = Path(app.outdir) / "_static"
    static.joinpath("excerpts.js").write_text(f"const EXCERPTS = {json.dumps(words, ensure_ascii=False)};\n")
    if app.config.html_baseurl:
        places = "".join(f"<url><loc>{app.config.html_baseurl}{place}</loc></url>\n" for place in
                         [*(app.builder.get_target_uri(page) for page in words if page != "404"), *walks])
        Path(app.outdir, "sitemap.xml").write_text('<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.'
                                                   f'sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n')


def setup(app) -> None:
    app.add_html_math_renderer("mathml", _mathml("inline"), _mathml("block"))
    for listener in (_scripts, _neighbours, _sharing):
        app.connect("html-page-context", listener)
    app.connect("html-page-context", _level, priority=900)  # after Furo has made them
    app.connect("build-finished", _beside_the_pages)
