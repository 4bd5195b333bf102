"""What happened: busy time per worker, imbalance, and traces for viewers."""

from tilewise.trace.chrome import write_chrome_trace
from tilewise.trace.summary import Summary, summarize

__all__ = ["Summary", "summarize", "write_chrome_trace"]
