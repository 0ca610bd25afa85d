"""``ort-interop-gen``, which is ``python -m ort_interop_gen``: imports the rest, so that it is quick to answer."""

from __future__ import annotations

import sys


def run() -> int:
    """Run the command line and return its exit code; an interrupt ends imports as it ends work."""
    try:
        import gc

        # A short run that keeps nearly all it makes: looking for garbage is a tenth of its time,
        # and looking once more at the end of the process a twentieth.
        gc.disable()
        from .cli.main import main

        code = main()
        gc.freeze()
        return code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was half-written\n")
        return 130


if __name__ == "__main__":
    sys.exit(run())
