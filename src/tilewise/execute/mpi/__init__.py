"""Ranks that calculate together. Only modules of this folder import mpi4py, and only if there are ranks."""
