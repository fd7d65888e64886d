"""Runs one test method of a unittest suite, and raises what it raises.

The importers read this file and put its **text** into a task's prelude, so it runs in the examiner, where the solution
is never loaded. A skipped test raises ``SkipTest``: in an examination nothing passes by being skipped. Nothing of
unittest's own result-keeping is used: an exception with a special meaning there can't make a test pass here.
"""

import types
import unittest
import unittest.case
from typing import Any


def _run_unittest(case: type[unittest.TestCase], name: str, module: dict[str, Any]) -> None:
    """Run ``case(name)`` with the fixtures of its class and of ``module``, the names of the suite."""
    # a message that nobody reads is not worth a diff, which takes minutes for two long lists
    unittest.case.difflib = types.SimpleNamespace(ndiff=lambda a, b: ())  # type: ignore[attr-defined]
    fails = any(getattr(x, "__unittest_expecting_failure__", False) for x in (case, getattr(case, name)))
    module.get("setUpModule", int)()
    case.setUpClass()
    failed = False
    try:
        case(name).debug()
    except unittest.SkipTest:
        raise
    except Exception:
        failed = True
        if not fails:
            raise
    if fails and not failed:
        raise AssertionError("a test that is expected to fail did not")
    case.tearDownClass()
    case.doClassCleanups()
    for error in case.tearDown_exceptions:  # type: ignore[attr-defined]
        raise error[1]
    module.get("tearDownModule", int)()
