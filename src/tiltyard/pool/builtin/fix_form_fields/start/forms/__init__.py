"""Checking what visitors type."""
