"""What opens over the dashboard: help, one log line in full, a question."""
