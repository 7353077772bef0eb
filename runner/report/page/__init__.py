"""Writes the report's web page: one file with a run, its problems and all that is to be read."""

from runner.report.page.html_page import LIBRARIES, OWN_SCRIPTS, STYLES, render_page, write_page

__all__ = ["LIBRARIES", "OWN_SCRIPTS", "STYLES", "render_page", "write_page"]
