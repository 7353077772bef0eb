"""Proves rules 1 to 7 of DESIGN.md, section 3, from an emitted directory alone.

Shares no code with the package, and runs where there is none: `python -m checker DIR...`.
"""
