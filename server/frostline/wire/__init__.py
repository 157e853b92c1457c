"""What the server and the worker say to each other: text and holes, never tokens, never positions."""
