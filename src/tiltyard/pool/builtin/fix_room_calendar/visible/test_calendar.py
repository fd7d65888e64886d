def test_bookings_may_touch():
    room = RoomCalendar()
    room.book(540, 600, "Bo")
    room.book(600, 660, "Cy")
    assert room.bookings() == [(540, 600, "Bo"), (600, 660, "Cy")]


def test_overlap_is_refused():
    room = RoomCalendar()
    room.book(540, 600, "Bo")
    assert room.is_free(570, 630) is False
