"""``python -m surefoot``: the command."""

from surefoot.cli import main

if __name__ == "__main__":
    main()
