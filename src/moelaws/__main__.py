"""``moelaws``, where it starts: in a launcher if there is one, else in this process."""

from moelaws.launcher.client import hand_on


def main() -> None:
    """Entry point of the command line."""
    hand_on()
    from moelaws.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
