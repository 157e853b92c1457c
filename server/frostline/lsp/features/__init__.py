"""What a client can ask for: one module a feature, each convert in, one call, convert out."""
