"""`python -m dia_demo`: the command line."""

import sys

from dia_demo.cli import main

sys.exit(main())
