"""The data that is kept from run to run: the inventory, the history that proves it, and the log of applies.

`store.open_inventory` reads the inventory for a run, `absence` decides which objects it deletes, and `projection` makes
the inventory that an apply stores.
"""
