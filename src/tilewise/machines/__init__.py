"""Machine files that come with tilewise; `hardware/machines.py` says what they hold."""
