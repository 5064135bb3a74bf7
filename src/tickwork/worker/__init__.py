"""Claims tasks, runs them, hands their outcomes in and keeps their leases."""
