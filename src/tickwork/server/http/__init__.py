"""The API over HTTP, and the dashboard."""
