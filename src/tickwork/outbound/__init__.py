"""What leaves for other hosts: which addresses may be called, one bounded HTTP client, secrets and keys."""
