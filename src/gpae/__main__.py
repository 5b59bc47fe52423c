"""``python -m gpae`` is ``gpae``."""

from gpae.cli.entry import main

if __name__ == "__main__":
    main()
