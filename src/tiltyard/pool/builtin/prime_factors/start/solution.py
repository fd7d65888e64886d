def prime_factors(n):
    """Return the prime factorisation of ``n`` as ascending (prime, exponent) tuples."""
    raise NotImplementedError
