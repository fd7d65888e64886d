"""Code that runs inside a cell: the standard library and this folder only; its caller is taken to be hostile."""
