"""Double-entry bookkeeping in cents."""
