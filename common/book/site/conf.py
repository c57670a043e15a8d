"""How Sphinx makes the site; its sources are written by common/tools/showing/book_pages.py."""

from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

HERE = Path(__file__).parent

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
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # which a page on the disk may not read
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


def _plots(app, page, template, context, doctree) -> None:
    """A page with plots gets the script that says what is in them."""
    if '<div class="plot">' in context.get("body", ""):
        app.add_js_file("plots.js", loading_method="defer")


def _level(app, page, template, context, doctree) -> None:
    """Sphinx calls the captions beside the page headings, and leaves out of which level."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app) -> None:
    app.add_html_math_renderer("mathml", _mathml("inline"), _mathml("block"))
    app.connect("html-page-context", _plots)
    app.connect("html-page-context", _level, priority=900)  # after Furo has made them
