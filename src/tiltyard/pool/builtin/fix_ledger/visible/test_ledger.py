from ledger.journal import Journal


def test_small_negative_amounts():
    journal = Journal()
    journal.post("2026-01-10", "stamps", {"cash": "-0.50", "costs": "0.50"})
    assert trial_balance(journal) == [("cash", "-0.50"), ("costs", "0.50")]


def test_statement():
    journal = Journal()
    journal.post("2026-01-01", "loan", {"cash": "100", "bank": "-100.00"})
    journal.post("2026-01-05", "paper", {"cash": "-12.30", "costs": "12.30"})
    assert statement(journal, "cash", "2026-01-01", "2026-01-31") == [
        "opening 0.00",
        "2026-01-01 loan 100.00 100.00",
        "2026-01-05 paper -12.30 87.70",
        "closing 87.70",
    ]
