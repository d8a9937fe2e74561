"""From desired and live state to a plan, a pure function, and around it what is read and selected for it."""
