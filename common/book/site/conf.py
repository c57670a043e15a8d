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


def _sharing(app, page, template, context, doctree) -> None:
    """The words and the picture that a page is shown with where somebody names its address."""
    address = app.config.html_baseurl
    picture = next(f"share/{name}.png" for name in (page.split("/")[0], "index")
                   if name == "index" or (Path(app.outdir) / "share" / f"{name}.png").exists())
    title = re.sub("<.*?>", "", context.get("title") or "Search")
    description = escape(_description(context.get("meta") or {}, doctree) or project)
    depth = "../" * page.count("/")
    named = {"og:site_name": project, "og:type": "website" if page == root_doc else "article",
             "og:title": title if page == root_doc else f"{title} · {project}", "og:description": description,
             "og:image": (address or depth) + picture, "og:image:width": "1200", "og:image:height": "630",
             **({"og:url": context["pageurl"]} if context.get("pageurl") else {})}
    context["metatags"] = context.get("metatags", "") + f'<meta name="description" content="{description}">' + "".join(
        f'<meta property="{name}" content="{value}">' for name, value in named.items()
    ) + '<meta name="twitter:card" content="summary_large_image">'
    if page == "404" and address:  # which is shown for any address, at any depth
        context["metatags"] += f'<base href="{urlsplit(address).path or "/"}">'
        context["pageurl"] = None


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
    static = Path(app.outdir) / "_static"
    static.joinpath("excerpts.js").write_text(f"const EXCERPTS = {json.dumps(words, ensure_ascii=False)};\n")
    if app.config.html_baseurl:
        places = "".join(f"<url><loc>{app.config.html_baseurl}{app.builder.get_target_uri(page)}</loc></url>\n"
                         for page in words if page != "404")
        Path(app.outdir, "sitemap.xml").write_text('<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.'
                                                   f'sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n')


def setup(app) -> None:
    app.add_html_math_renderer("mathml", _mathml("inline"), _mathml("block"))
    for listener in (_scripts, _neighbours, _sharing):
        app.connect("html-page-context", listener)
    app.connect("html-page-context", _level, priority=900)  # after Furo has made them
    app.connect("build-finished", _beside_the_pages)
