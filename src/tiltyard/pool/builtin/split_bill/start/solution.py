def split_bill(total, weights):
    """Split ``total`` cents in proportion to ``weights`` by the largest remainder method."""
    raise NotImplementedError
