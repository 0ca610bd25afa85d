"""``python -m ort_interop_gen`` is the command ``ort-interop-gen``."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
