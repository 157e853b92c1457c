"""Rules about a user's text. Standard library only: no I/O, no waiting, no editor, no model.

If a rule decides what may happen to somebody's file, it is in this package.
"""
