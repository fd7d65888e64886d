"""Code that runs inside the two cells of a grading: the standard library and this folder only.

``link`` frames bytes, ``codec`` turns values into plain JSON and back, ``shared`` keeps mutable containers equal on
both sides, ``proxy`` makes stand-ins for objects that stay on the other side, ``guard`` says what the solution may
ask of the examiner's objects, ``peer`` is the conversation. ``examiner`` and ``solution`` are the two programs.

For suites: ``suite`` is one session of pytest, ``suite_remote`` and ``package`` the two programs of the remote way,
``suite_local`` that of the in-process way, with ``seal`` and ``watch``; ``visible_suite`` runs in a player's cell.

The examiner holds the hidden tests and believes nothing: whatever bytes come from the solution's side end in a clean
value, a clean exception, or a failed test.
"""
