"""Formats help texts: commands under headings, and examples below a command's options."""

from collections.abc import Sequence

import click


class Group(click.Group):
    """A group that prints its help if called alone, and lists commands under headings."""

    sections: dict[str, Sequence[click.Command]]

    def add_sections(self, sections: dict[str, Sequence[click.Command]]) -> None:
        """Add commands under headings; the help lists them in this order."""
        self.sections = sections
        for commands in sections.values():
            for command in commands:
                self.add_command(command)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; without any, show the help."""
        return super().parse_args(ctx, args or ["--help"])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command's name and summary; long summaries are wrapped, not cut off."""
        sections = getattr(self, "sections", {"Commands": list(self.commands.values())})
        width = max(len(name) for name in self.commands)
        for title, commands in sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (str(command.name).ljust(width), command.get_short_help_str(limit=200))
                        for command in commands
                    ]
                )


def examples(*lines: str) -> str:
    """Return an epilog with example command lines, which click does not rewrap."""
    return "\n".join(
        ["\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  {x}" for x in lines)]
    )
