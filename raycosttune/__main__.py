"""Lets `python -m raycosttune` do what `raycosttune` does."""

from raycosttune.cli import main

if __name__ == "__main__":
    main(prog_name="raycosttune")
