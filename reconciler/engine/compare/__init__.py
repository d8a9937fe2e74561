"""The comparison of desired and live state: it makes a plan, and is pure: nothing here reads, waits or logs.

`planner.make_plan` is the entry. `matching` finds the live object of each declared one, and `objects` plans its change.
"""
