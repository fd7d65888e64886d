import random


def test_smallest_first():
    queue = filled(("c", 30), ("a", 10), ("d", 40), ("b", 20))
    assert drained(queue) == ["a", "b", "c", "d"]
    assert len(queue) == 0


def test_ties_in_order_of_push():
    queue = filled(("z", 1), ("a", 1), ("m", 0), ("k", 1), ("b", 0))
    assert drained(queue) == ["m", "b", "z", "a", "k"]


def test_negative_and_float_priorities():
    queue = filled(("p", 0.5), ("q", -2), ("r", 0), ("s", -1.5))
    assert drained(queue) == ["q", "s", "r", "p"]


def test_peek_takes_nothing_out():
    queue = filled(("p", 2), ("q", 1))
    assert queue.peek() == "q"
    assert queue.peek() == "q"
    assert len(queue) == 2
    assert queue.pop() == "q"
    assert queue.peek() == "p"


def test_empty():
    queue = PriorityQueue()
    assert len(queue) == 0
    assert raises(IndexError, queue.pop)
    assert raises(IndexError, queue.peek)
    queue.push("p", 1)
    assert queue.pop() == "p"
    assert raises(IndexError, queue.pop)
    assert raises(IndexError, queue.peek)


def test_push_twice():
    queue = filled(("p", 1))
    assert raises(ValueError, queue.push, "p", 1)
    assert raises(ValueError, queue.push, "p", 0)
    assert len(queue) == 1 and queue.priority("p") == 1
    assert queue.pop() == "p"
    queue.push("p", 5)
    assert queue.priority("p") == 5


def test_update_down_and_up():
    queue = filled(("p", 10), ("q", 20), ("r", 30))
    queue.update("r", 5)
    queue.update("p", 25)
    assert drained(queue) == ["r", "q", "p"]


def test_update_several_times():
    queue = filled(("p", 1), ("q", 2))
    for priority in (9, 0, 7, 3):
        queue.update("p", priority)
    assert queue.priority("p") == 3
    assert len(queue) == 2
    assert drained(queue) == ["q", "p"]
    assert raises(IndexError, queue.pop)


def test_update_keeps_the_place_among_equals():
    queue = filled(("p", 1), ("q", 2), ("r", 2))
    queue.update("p", 2)
    assert drained(queue) == ["p", "q", "r"]
    queue = filled(("p", 2), ("q", 2), ("r", 3))
    queue.update("r", 2)
    queue.update("p", 2)
    assert drained(queue) == ["p", "q", "r"]


def test_push_again_is_a_new_place():
    queue = filled(("p", 1), ("q", 1))
    queue.remove("p")
    queue.push("p", 1)
    assert drained(queue) == ["q", "p"]


def test_remove():
    queue = filled(("p", 1), ("q", 2), ("r", 3))
    queue.remove("q")
    assert "q" not in queue and len(queue) == 2
    queue.remove("p")
    assert queue.peek() == "r"
    assert drained(queue) == ["r"]


def test_remove_and_push_with_another_priority():
    queue = filled(("p", 1), ("q", 2))
    queue.remove("p")
    queue.push("p", 3)
    assert queue.peek() == "q"
    assert drained(queue) == ["q", "p"]


def test_items_that_are_not_there():
    queue = filled(("p", 1))
    assert queue.pop() == "p"
    for call in (queue.remove, queue.priority):
        assert raises(KeyError, call, "p")
        assert raises(KeyError, call, "x")
    assert raises(KeyError, queue.update, "p", 1)
    assert raises(KeyError, queue.update, "x", 1)
    assert len(queue) == 0


def test_contains():
    queue = filled(("p", 1), (0, 2))
    assert "p" in queue and 0 in queue
    assert "q" not in queue and 1 not in queue
    assert queue.pop() == "p"
    assert "p" not in queue


def test_priority():
    queue = filled(("p", 4), ("q", 0.25))
    assert (queue.priority("p"), queue.priority("q")) == (4, 0.25)
    queue.update("p", 0)
    assert queue.priority("p") == 0


def test_items_that_cannot_be_compared():
    queue = filled(("p", 1), (3, 1), (("p", 3), 1), (2, 0), ("a", 1))
    queue.update(("p", 3), 1)
    assert drained(queue) == [2, "p", 3, ("p", 3), "a"]


def test_against_a_model():
    rng = random.Random(33)
    queue, model, pushed = PriorityQueue(), {}, 0
    for _ in range(250):
        item = rng.choice("abcdefgh")
        action = rng.choice(["push", "push", "pop", "update", "remove"])
        priority = rng.randrange(4)
        if action == "push" and item not in model:
            queue.push(item, priority)
            model[item] = (priority, pushed)
            pushed += 1
        elif action == "pop" and model:
            first = min(model, key=model.get)
            assert queue.peek() == first
            assert queue.pop() == first
            del model[first]
        elif action == "update" and item in model:
            queue.update(item, priority)
            model[item] = (priority, model[item][1])
        elif action == "remove" and item in model:
            queue.remove(item)
            del model[item]
        assert len(queue) == len(model)
    assert drained(queue) == sorted(model, key=model.get)
