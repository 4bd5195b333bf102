"""Machine files that come with tilewise; `execute/machines.py` says what they hold."""
