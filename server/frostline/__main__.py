"""`python -m frostline` is `frostline`."""

from frostline.cli import main

raise SystemExit(main())
