"""Outputs: what people and programs read of plans, reports and validations."""
