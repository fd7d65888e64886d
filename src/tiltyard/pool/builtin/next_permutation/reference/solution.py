def next_permutation(values):
    """Change ``values`` to its next arrangement; False if it went from the last to the first."""
    pivot = len(values) - 2
    while pivot >= 0 and values[pivot] >= values[pivot + 1]:
        pivot -= 1
    if pivot < 0:
        values.reverse()
        return False
    successor = len(values) - 1
    while values[successor] <= values[pivot]:
        successor -= 1
    values[pivot], values[successor] = values[successor], values[pivot]
    values[pivot + 1 :] = reversed(values[pivot + 1 :])
    return True
