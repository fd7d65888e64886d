"""Where tasks come from, besides published sets: mined from a history, broken on purpose, told in other words."""
