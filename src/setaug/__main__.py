"""Run the command line as ``python -m setaug``, which ``accelerate launch -m setaug`` needs."""

import sys

from setaug.cli import main

sys.exit(main())
