"""How a canvas is denoised: algorithms on tensors, and nothing else.

Words of the field and ours: `x` is `tokens`, `x0` is `proposed`, `x0_p` is `confidence`, the mask
index is `open`, the transfer index is `settled`, `nfe` is `forwards`. Everything here sees the slots
of holes only, numbered from 0 over all gaps; where they lie in the model's input is the model's
business. Whether a slot is open is an array of booleans, never a comparison with the mask token:
some models have none, and source text may spell it.
"""
