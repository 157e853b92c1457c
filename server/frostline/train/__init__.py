"""The recipe of the embedded model: `frostline train`."""

from frostline.train.command import EXAMPLE, add_arguments, main

__all__ = ["EXAMPLE", "add_arguments", "main"]
