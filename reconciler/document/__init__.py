"""Plans and reports as documents: a head, the targets of the run, and a flat list of items.

The engine ends here and reports begin here. Begin with `document.RunDocument`, then `stored.save` and
`plans.with_plan`.
"""
