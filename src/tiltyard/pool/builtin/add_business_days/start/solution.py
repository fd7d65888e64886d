def add_business_days(start, days, holidays=()):
    """Return the date that lies ``days`` working days after (or, below 0, before) ``start``."""
    raise NotImplementedError
