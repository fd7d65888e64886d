from ledger import money
from ledger.journal import Journal, Unbalanced


def test_show_negative():
    assert money.show(-5) == "-0.05"
    assert money.show(-1230) == "-12.30"
    assert money.show(-100) == "-1.00"
    assert money.show(-123456789) == "-1,234,567.89"
    assert money.show(-99999) == "-999.99"


def test_show_positive():
    assert money.show(0) == "0.00"
    assert money.show(7) == "0.07"
    assert money.show(123456) == "1,234.56"
    assert money.show(100000000) == "1,000,000.00"


def test_parse_less_than_one():
    assert money.parse("-0.50") == -50
    assert money.parse("-0.01") == -1
    assert money.parse("+0.25") == 25
    assert money.parse("-0") == 0


def test_parse_others():
    assert money.parse("12") == 1200
    assert money.parse("-12.05") == -1205
    assert money.parse("+1,234.56") == 123456
    assert money.parse("-1,000,000") == -100000000
    assert money.parse("1234567.00") == 123456700


def test_parse_refuses():
    for text in ("", "1.5", "1.234", "12,34.00", "1,2345", ",100", "- 1", "--1", "1e2", " 1", "1.00-", ".50"):
        raises(ValueError, money.parse, text)


def test_show_and_parse_agree():
    for cents in (-100001, -10050, -101, -100, -99, -10, -1, 0, 1, 99, 250000, 10**12):
        assert money.parse(money.show(cents)) == cents


def test_share_positive():
    assert money.share(100, [1, 1, 1]) == [34, 33, 33]
    assert money.share(101, [1, 1, 1]) == [34, 34, 33]
    assert money.share(5, [0, 1, 0, 1]) == [0, 3, 0, 2]
    assert money.share(1000, [50, 30, 20]) == [500, 300, 200]


def test_share_negative_mirrors():
    assert money.share(-100, [1, 1, 1]) == [-34, -33, -33]
    assert money.share(-5, [0, 1, 0, 1]) == [0, -3, 0, -2]
    for cents in range(0, 120, 7):
        for weights in ([3, 2, 2], [1, 6], [5, 0, 4, 1]):
            up, down = money.share(cents, weights), money.share(-cents, weights)
            assert down == [-part for part in up]
            assert sum(down) == -cents


def test_share_refuses():
    raises(ValueError, money.share, 100, [0, 0])
    raises(ValueError, money.share, 100, [2, -1])


def test_shared_booking_and_its_reversal():
    journal = Journal()
    centres = [("north", 1), ("south", 1), ("west", 5)]
    journal.post_shared("2026-02-01", "rent", "bank", "100.01", centres)
    journal.post_shared("2026-02-02", "rent back", "bank", "-100.01", centres)
    assert trial_balance(journal) == []


def test_unbalanced():
    journal = Journal()
    raises(Unbalanced, journal.post, "2026-01-01", "x", {"a": "1.00", "b": "-0.99"})
    raises(Unbalanced, journal.post, "2026-01-01", "x", {"a": "0.50", "b": "0.50"})
    raises(ValueError, journal.post, "2026-01-01", "x", {"a": "one", "b": "-1"})
    assert journal.post("2026-01-01", "x", {"a": "0.99", "b": "-0.99"}) == 1


def test_opening_excludes_the_first_day():
    journal = Journal()
    journal.post("2026-03-01", "a", {"cash": "-0.05", "x": "0.05"})
    journal.post("2026-03-02", "b", {"cash": "-1.00", "x": "1.00"})
    journal.post("2026-03-03", "c", {"cash": "3.00", "x": "-3.00"})
    assert statement(journal, "cash", "2026-03-02", "2026-03-03") == [
        "opening -0.05",
        "2026-03-02 b -1.00 -1.05",
        "2026-03-03 c 3.00 1.95",
        "closing 1.95",
    ]


def test_periods_join():
    journal = Journal()
    for day in range(1, 29):
        journal.post(f"2026-02-{day:02d}", "d", {"cash": f"-{day}.10", "x": f"{day}.10"})
    first = statement(journal, "cash", "2026-02-01", "2026-02-14")
    second = statement(journal, "cash", "2026-02-15", "2026-02-28")
    assert first[-1].split()[1] == second[0].split()[1] == "-106.40"
    assert second[-1] == "closing -408.80"
    assert len(first) + len(second) == 28 + 4


def test_sorted_by_date_then_entry():
    journal = Journal()
    journal.post("2026-05-09", "z", {"cash": "1", "x": "-1"})
    journal.post("2026-05-02", "late", {"cash": "2", "x": "-2"})
    journal.post("2026-05-09", "a", {"cash": "4", "x": "-4"})
    assert statement(journal, "cash", "2026-05-01", "2026-05-31") == [
        "opening 0.00",
        "2026-05-02 late 2.00 2.00",
        "2026-05-09 z 1.00 3.00",
        "2026-05-09 a 4.00 7.00",
        "closing 7.00",
    ]
    assert [booking.number for booking in journal.bookings] == [1, 2, 3]


def test_other_accounts_are_left_out():
    journal = Journal()
    journal.post("2026-05-01", "a", {"cash": "1", "x": "-1"})
    assert statement(journal, "y", "2026-05-01", "2026-05-31") == ["opening 0.00", "closing 0.00"]
    assert trial_balance(journal) == [("cash", "1.00"), ("x", "-1.00")]


def test_balance_of_everything():
    journal = Journal()
    journal.post("2026-05-01", "a", {"cash": "1.50", "x": "-1.50"})
    journal.post("2026-05-03", "b", {"cash": "2.25", "x": "-2.25"})
    assert journal.balance("cash") == 375
    assert journal.balance("x", before="2026-05-03") == -150
    assert journal.balance("x", before="2026-05-01") == 0
