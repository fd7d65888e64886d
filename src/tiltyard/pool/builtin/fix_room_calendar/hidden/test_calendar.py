def test_touching_after():
    room = RoomCalendar()
    room.book(600, 630, "a")
    assert room.is_free(630, 700) is True
    room.book(630, 700, "b")
    assert [b[2] for b in room.bookings()] == ["a", "b"]


def test_touching_before():
    room = RoomCalendar()
    room.book(600, 630, "a")
    room.book(570, 600, "b")
    assert [b[2] for b in room.bookings()] == ["b", "a"]


def test_fits_exactly_between_two():
    room = RoomCalendar()
    room.book(600, 660, "a")
    room.book(720, 780, "b")
    room.book(660, 720, "c")
    assert len(room.bookings()) == 3


def test_enclosing_is_taken():
    room = RoomCalendar()
    room.book(600, 660, "a")
    raises(Taken, room.book, 590, 670, "Ann")
    raises(Taken, room.book, 480, 1200, "Ann")
    assert room.bookings() == [(600, 660, "a")]


def test_enclosed_is_taken():
    room = RoomCalendar()
    room.book(600, 720, "a")
    raises(Taken, room.book, 630, 640, "b")


def test_same_time_is_taken():
    room = RoomCalendar()
    room.book(600, 720, "a")
    raises(Taken, room.book, 600, 720, "b")
    raises(Taken, room.book, 600, 650, "b")
    raises(Taken, room.book, 660, 720, "b")
    raises(Taken, room.book, 600, 800, "b")
    raises(Taken, room.book, 500, 720, "b")


def test_partial_overlaps_are_taken():
    room = RoomCalendar()
    room.book(600, 720, "a")
    raises(Taken, room.book, 719, 800, "b")
    raises(Taken, room.book, 500, 601, "b")


def test_move_that_fails_keeps_the_booking():
    room = RoomCalendar()
    room.book(600, 660, "a")
    room.book(700, 760, "b")
    raises(Taken, room.move, 600, 690)
    assert room.bookings() == [(600, 660, "a"), (700, 760, "b")]
    raises(Taken, room.book, 630, 640, "c")


def test_move_outside_the_hours_keeps_the_booking():
    room = RoomCalendar(opens=540, closes=1020)
    room.book(600, 660, "a")
    raises(ValueError, room.move, 600, 1000)
    raises(ValueError, room.move, 600, 500)
    assert room.bookings() == [(600, 660, "a")]


def test_move_over_its_own_old_time():
    room = RoomCalendar()
    room.book(600, 660, "a")
    room.move(600, 630)
    assert room.bookings() == [(630, 690, "a")]


def test_move_to_touch_another():
    room = RoomCalendar()
    room.book(600, 660, "a")
    room.book(720, 780, "b")
    room.move(600, 660)
    room.move(720, 600)
    assert room.bookings() == [(600, 660, "b"), (660, 720, "a")]


def test_move_of_nothing():
    room = RoomCalendar()
    room.book(600, 660, "a")
    raises(KeyError, room.move, 601, 700)
    assert room.bookings() == [(600, 660, "a")]


def test_cancel():
    room = RoomCalendar()
    room.book(600, 660, "a")
    assert room.cancel(600) == "a"
    raises(KeyError, room.cancel, 600)
    room.book(630, 650, "b")
    assert room.bookings() == [(630, 650, "b")]


def test_hours_and_empty_bookings():
    room = RoomCalendar(opens=540, closes=1020)
    room.book(540, 1020, "all day")
    other = RoomCalendar(opens=540, closes=1020)
    raises(ValueError, other.book, 539, 600, "x")
    raises(ValueError, other.book, 1000, 1021, "x")
    raises(ValueError, other.book, 600, 600, "x")
    raises(ValueError, other.book, 660, 600, "x")
    assert other.bookings() == []


def test_gaps():
    room = RoomCalendar(opens=480, closes=720)
    room.book(510, 540, "a")
    room.book(600, 700, "b")
    assert room.gaps(30) == [(480, 510), (540, 600)]
    assert room.gaps(20) == [(480, 510), (540, 600), (700, 720)]
    assert room.gaps(61) == []


def test_hours_that_are_meant_if_none_are_given():
    room = RoomCalendar()
    raises(ValueError, room.book, 479, 540, "a")
    raises(ValueError, room.book, 1140, 1201, "a")
    room.book(480, 1200, "a")
    assert room.bookings() == [(480, 1200, "a")]


def test_is_free_says_no():
    room = RoomCalendar()
    room.book(540, 600, "a")
    assert room.is_free(570, 630) is False
    assert room.is_free(500, 541) is False


def test_move_keeps_the_length_of_its_own_booking():
    room = RoomCalendar()
    room.book(600, 660, "a")
    room.book(720, 730, "b")
    room.move(720, 800)
    assert room.bookings() == [(600, 660, "a"), (800, 810, "b")]
    raises(Taken, room.move, 800, 655)
    assert room.bookings() == [(600, 660, "a"), (800, 810, "b")]
