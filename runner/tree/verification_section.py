"""Writes the section of `decomposition_analysis.md` that verification fills in.

The page begins with NOT_VERIFIED in it; verification replaces the text between the two marks. The
marks are Markdown comments, which the rendered page does not show.
"""

from collections.abc import Iterable

ANALYSIS_FILE = "decomposition_analysis.md"
_BEGIN = "<!-- verification -->"
_END = "<!-- end of verification -->"


def section(lines: Iterable[str]) -> str:
    """Return lines of Markdown between the section's marks."""
    return "\n".join([_BEGIN, *lines, _END])


NOT_VERIFIED = section(["Not verified."])


def with_section(page: str, lines: Iterable[str]) -> str:
    """Return a page with these lines in its section; a page without the section is unchanged."""
    before, begin, remainder = page.partition(_BEGIN)
    _, end, after = remainder.partition(_END)
    return before + section(lines) + after if begin and end else page
