"""Estimators over counts of outcomes: pass@k, posteriors, the chance that a group carries signal, advantages."""
