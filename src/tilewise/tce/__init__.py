"""The Tensor Contraction Engine: its routines in the language of our equations, and as a method that runs."""

from tilewise.tce.text import equation_text

__all__ = ["equation_text"]
