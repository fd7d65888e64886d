class InsufficientFunds(Exception):
    """The balance is too small for what was asked."""


class BankAccount:
    """An account in whole cents that remembers what happened to it."""

    def __init__(self, owner, balance=0):
        """Open an account for ``owner`` with a balance of at least 0."""
        raise NotImplementedError

    def deposit(self, amount):
        """Add an amount; return the new balance."""
        raise NotImplementedError

    def withdraw(self, amount):
        """Take an amount away; return the new balance."""
        raise NotImplementedError

    def transfer(self, amount, other):
        """Move an amount to another account."""
        raise NotImplementedError

    def history(self):
        """Return what happened since opening, oldest first."""
        raise NotImplementedError
