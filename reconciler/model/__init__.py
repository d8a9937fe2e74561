"""The values that all other folders share: targets, kinds and their endpoints, desired and live state, plans. Pure.

Begin with `targets.Target`, `kind.Kind`, `state.DesiredState` and `LiveState`, and `plan.Plan`.
"""
