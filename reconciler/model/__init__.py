"""The values of the middle: targets, kinds and their endpoints, desired and live state, plans. No input, no output."""
