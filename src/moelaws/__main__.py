"""``python -m moelaws``: the command line."""

from moelaws.cli import main

if __name__ == "__main__":
    main()
