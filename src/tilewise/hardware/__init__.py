"""Machines: files that describe them, and the machine at hand as it is measured."""
