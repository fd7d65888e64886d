def prime_factors(n):
    """Return the prime factorisation of ``n`` as ascending (prime, exponent) tuples."""
    if n < 1:
        raise ValueError("only positive integers have a prime factorisation")
    factors = []
    divisor = 2
    while divisor * divisor <= n:
        exponent = 0
        while n % divisor == 0:
            n //= divisor
            exponent += 1
        if exponent:
            factors.append((divisor, exponent))
        divisor += 1 if divisor == 2 else 2
    if n > 1:
        factors.append((n, 1))
    return factors
