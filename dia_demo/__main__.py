"""`python -m dia_demo`: the command line."""

import sys

from dia_demo.cli.main import main

sys.exit(main())
