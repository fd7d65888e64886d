"""Code that runs in a cell, to compare a mutant with its reference: the standard library and this folder only."""
