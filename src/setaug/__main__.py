"""Run the command line: ``python -m setaug``."""

import sys

from setaug.cli import main

sys.exit(main())
