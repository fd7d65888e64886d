"""Goods, reservations and reports."""
