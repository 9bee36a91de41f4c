"""What changed between runs that differ in one precision; pure functions on rows they are given."""
