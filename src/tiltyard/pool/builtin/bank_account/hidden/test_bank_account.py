def test_opening():
    account = BankAccount("Cleo")
    assert account.owner == "Cleo"
    assert account.balance == 0
    assert account.history() == []
    assert BankAccount("Dan", 75).balance == 75
    assert BankAccount(owner="Eve", balance=3).balance == 3


def test_opening_balance_is_not_history():
    account = BankAccount("Dan", 75)
    assert account.history() == []
    account.withdraw(5)
    assert account.history() == [("withdraw", 5)]


def test_negative_opening_balance():
    assert raises(ValueError, BankAccount, "Finn", -1)
    assert BankAccount("Finn", 0).balance == 0


def test_deposit_returns_the_balance():
    account = BankAccount("Gil", 10)
    assert account.deposit(5) == 15
    assert account.deposit(100) == 115
    assert account.balance == 115


def test_withdraw_everything():
    account = BankAccount("Hal", 60)
    assert account.withdraw(60) == 0
    assert account.balance == 0
    assert raises(InsufficientFunds, account.withdraw, 1)


def test_insufficient_is_no_value_error():
    account = BankAccount("Ida", 9)
    assert raises(InsufficientFunds, account.withdraw, 10)
    assert not raises(ValueError, account.withdraw, 10)
    assert issubclass(InsufficientFunds, Exception)
    assert account.balance == 9


def test_amounts_must_be_above_zero():
    account = BankAccount("Jon", 50)
    other = BankAccount("Kay", 50)
    for amount in (0, -1, -1000):
        assert raises(ValueError, account.deposit, amount)
        assert raises(ValueError, account.withdraw, amount)
        assert raises(ValueError, account.transfer, amount, other)
    assert (account.balance, other.balance) == (50, 50)
    assert account.history() == other.history() == []


def test_zero_from_an_empty_account():
    account = BankAccount("Lea")
    assert raises(ValueError, account.withdraw, 0)
    assert raises(ValueError, account.withdraw, -5)
    assert account.balance == 0


def test_history_in_order():
    account = BankAccount("Mia", 100)
    account.deposit(20)
    account.withdraw(70)
    account.deposit(1)
    assert account.history() == [("deposit", 20), ("withdraw", 70), ("deposit", 1)]


def test_transfer_moves_money():
    one, two = BankAccount("Ned", 300), BankAccount("Oda", 40)
    one.transfer(300, two)
    two.transfer(15, one)
    assert (one.balance, two.balance) == (15, 325)


def test_transfer_in_both_histories():
    one, two = BankAccount("Ned", 300), BankAccount("Oda", 40)
    one.transfer(30, two)
    two.withdraw(5)
    two.transfer(65, one)
    assert one.history() == [("transfer_out", 30, "Oda"), ("transfer_in", 65, "Oda")]
    assert two.history() == [("transfer_in", 30, "Ned"), ("withdraw", 5), ("transfer_out", 65, "Ned")]


def test_failed_transfer_changes_nothing():
    one, two = BankAccount("Pam", 20), BankAccount("Quin", 1)
    assert raises(InsufficientFunds, one.transfer, 21, two)
    assert (one.balance, two.balance) == (20, 1)
    assert one.history() == [] and two.history() == []


def test_transfer_to_itself():
    account = BankAccount("Rob", 100)
    assert raises(ValueError, account.transfer, 10, account)
    assert account.balance == 100
    assert account.history() == []


def test_same_owner_is_not_the_same_account():
    one, two = BankAccount("Sue", 100), BankAccount("Sue", 100)
    one.transfer(10, two)
    assert (one.balance, two.balance) == (90, 110)


def test_failed_calls_leave_no_history():
    account = BankAccount("Tim", 10)
    assert raises(InsufficientFunds, account.withdraw, 11)
    assert raises(ValueError, account.deposit, 0)
    account.deposit(2)
    assert account.history() == [("deposit", 2)]


def test_accounts_are_independent():
    one, two = BankAccount("Uma", 5), BankAccount("Val", 5)
    one.deposit(10)
    assert (one.balance, two.balance) == (15, 5)
    assert two.history() == []
    assert one.history() == [("deposit", 10)]
