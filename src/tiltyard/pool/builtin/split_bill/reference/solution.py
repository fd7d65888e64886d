def split_bill(total, weights):
    """Split ``total`` cents in proportion to ``weights`` by the largest remainder method."""
    if total < 0 or any(weight < 0 for weight in weights):
        raise ValueError("the total and the weights can't be negative")
    whole = sum(weights)
    if whole == 0:
        raise ValueError("at least one weight must be above 0")
    shares = [total * weight // whole for weight in weights]
    left = total - sum(shares)
    by_loss = sorted(range(len(weights)), key=lambda i: total * weights[i] % whole, reverse=True)
    for i in by_loss[:left]:
        shares[i] += 1
    return shares
