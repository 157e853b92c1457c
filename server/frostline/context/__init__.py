"""What is around a place in the text: scope, syntax, holes, and what may not be read at all.

Trees are made by tree-sitter, which counts UTF-8 bytes; everything that leaves this package counts
code points of the document. Nothing here knows an editor, a model or a worker.
"""
