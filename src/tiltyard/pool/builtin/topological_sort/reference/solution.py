import heapq


def topological_sort(prerequisites):
    """Return all tasks in an order that respects their prerequisites, smallest name first where free."""
    waiting_for = {task: set(before) for task, before in prerequisites.items()}
    unlocks = {}
    for task, before in prerequisites.items():
        for other in set(before):
            waiting_for.setdefault(other, set())
            unlocks.setdefault(other, []).append(task)

    ready = [task for task, before in waiting_for.items() if not before]
    heapq.heapify(ready)
    order = []
    while ready:
        done = heapq.heappop(ready)
        order.append(done)
        for task in unlocks.get(done, ()):
            waiting_for[task].remove(done)
            if not waiting_for[task]:
                heapq.heappush(ready, task)
    if len(order) < len(waiting_for):
        raise ValueError("tasks wait for each other in a circle")
    return order
