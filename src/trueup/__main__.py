"""``python -m trueup`` is the command ``trueup``."""

from trueup.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
