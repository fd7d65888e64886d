"""``python -m tiltyard``: the command line."""

from tiltyard.cli import main

if __name__ == "__main__":
    main()
