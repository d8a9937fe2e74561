"""From desired and live state to a plan. Pure: nothing here reads, waits or logs."""
