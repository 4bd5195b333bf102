"""What happened: busy time per worker, imbalance, and traces for viewers."""

from tilewise.trace.chrome import TraceFile
from tilewise.trace.summary import Summary, summarize

__all__ = ["Summary", "TraceFile", "summarize"]
