# Sphinx makes the site of the documents that site/make.sh has gathered. No page asks another machine for anything.
import os

project = "attend"
release = os.environ["ATTEND_VERSION"]
html_title = f"attend {release}"
extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
nitpicky = True  # a link that leads nowhere is a warning, and with -W an error
highlight_language = "none"
smartquotes = False  # which would make one dash of the two before an option
html_theme = "sphinx_rtd_theme"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_use_index = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_show_search_summary = False  # which a browser would not read from a disk


def setup(app):
    app.connect("html-page-context", set_language)


def set_language(app, page, template, context, document):
    if page.endswith(".ja"):
        context["language"] = "ja"
