from datetime import date, timedelta


def add_business_days(start, days, holidays=()):
    """Return the date that lies ``days`` working days after (or, below 0, before) ``start``."""
    day = date.fromisoformat(start)
    free = {date.fromisoformat(holiday) for holiday in holidays}

    def is_working(d):
        return d.weekday() < 5 and d not in free

    if days == 0:
        if is_working(day):
            return day.isoformat()
        days = 1
    step = timedelta(days=1 if days > 0 else -1)
    left = abs(days)
    while left:
        day += step
        if is_working(day):
            left -= 1
    return day.isoformat()
