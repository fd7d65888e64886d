"""Every known way of cheating a grader, played against a pool: nothing may be paid, nothing harmed."""
