"""Runs the command line: `python -m kdrun` is `kdrun`."""

from runner.cli import main

if __name__ == "__main__":
    main()
