"""Models: what they can do, their weights, and the one face that the worker sees.

Loading is safetensors and JSON only: no remote code is executed and no pickle is opened.
"""
