"""Sessions: who takes part, in what, how far they are, and how it ended.

entry       begin() gives a place and a token, new_links() personal links
assignment  who is given which image, and which share of its pairs
rows        by_token() recognises the browser, named() and each() are for the researcher
course      progress(); complete(), leave() and end() close a session
roster      counts(), listed(), who_is_who(), and reason_to_refuse() for the page's first look

Only hashes of tokens are stored.
"""

from vseg.store.sessions.course import Progress, complete, end, leave, progress
from vseg.store.sessions.entry import Begun, Identity, begin, new_links
from vseg.store.sessions.roster import Counts, counts, listed, reason_to_refuse, who_is_who
from vseg.store.sessions.rows import SessionRow, by_token, each, named

__all__ = [
    "Begun", "Counts", "Identity", "Progress", "SessionRow", "begin", "by_token", "complete",
    "counts", "each", "end", "leave", "listed", "named", "new_links", "progress", "reason_to_refuse", "who_is_who",
]  # fmt: skip
