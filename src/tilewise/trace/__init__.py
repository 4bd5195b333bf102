"""What happened: busy time per worker, imbalance, traces for viewers, and reports made of them."""

from tilewise.trace.chrome import TraceFile
from tilewise.trace.page import report_page
from tilewise.trace.reader import Trace, read_trace
from tilewise.trace.report import report
from tilewise.trace.summary import Summary, summarize

__all__ = ["Summary", "Trace", "TraceFile", "read_trace", "report", "report_page", "summarize"]
