"""Frostline freezes your code and denoises only what you select."""

__version__ = "0.1.0"
