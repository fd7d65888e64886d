class InsufficientFunds(Exception):
    """The balance is too small for what was asked."""


class BankAccount:
    """An account in whole cents that remembers what happened to it."""

    def __init__(self, owner, balance=0):
        """Open an account for ``owner`` with a balance of at least 0."""
        if balance < 0:
            raise ValueError("an account can't be opened with a negative balance")
        self.owner = owner
        self.balance = balance
        self._history = []

    def deposit(self, amount):
        """Add an amount; return the new balance."""
        self._check_amount(amount)
        self.balance += amount
        self._history.append(("deposit", amount))
        return self.balance

    def withdraw(self, amount):
        """Take an amount away; return the new balance."""
        self._check_amount(amount)
        self._check_funds(amount)
        self.balance -= amount
        self._history.append(("withdraw", amount))
        return self.balance

    def transfer(self, amount, other):
        """Move an amount to another account."""
        self._check_amount(amount)
        if other is self:
            raise ValueError("a transfer needs two different accounts")
        self._check_funds(amount)
        self.balance -= amount
        other.balance += amount
        self._history.append(("transfer_out", amount, other.owner))
        other._history.append(("transfer_in", amount, self.owner))

    def history(self):
        """Return what happened since opening, oldest first."""
        return list(self._history)

    def _check_amount(self, amount):
        if amount <= 0:
            raise ValueError("an amount must be above 0")

    def _check_funds(self, amount):
        if amount > self.balance:
            raise InsufficientFunds(f"{self.balance} is less than {amount}")
