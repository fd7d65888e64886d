"""What the records of a store teach about its players and its pool."""
