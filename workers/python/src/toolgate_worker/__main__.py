"""`python -m toolgate_worker`."""

import sys

from .main import main

# Child processes of `multiprocessing` import this module, too.
if __name__ == "__main__":
    sys.exit(main())
