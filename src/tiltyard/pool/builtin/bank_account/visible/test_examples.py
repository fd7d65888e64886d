def test_deposit_and_withdraw():
    account = BankAccount("Ada", 500)
    assert account.withdraw(120) == 380
    assert account.deposit(20) == 400
    assert account.balance == 400


def test_transfer():
    ada, bo = BankAccount("Ada", 500), BankAccount("Bo")
    ada.transfer(80, bo)
    assert (ada.balance, bo.balance) == (420, 80)
    assert ada.history() == [("transfer_out", 80, "Bo")]


def test_too_little():
    account = BankAccount("Bo", 80)
    try:
        account.withdraw(81)
    except InsufficientFunds:
        pass
    else:
        raise AssertionError("InsufficientFunds was expected")
    assert account.balance == 80
