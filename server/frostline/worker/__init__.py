"""The process that owns the model: text and holes in, drafts out."""
