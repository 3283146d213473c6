"""Sessions: who takes part, in what, how far they are, and how it ended.

entry       begin() gives a place and a token, new_links() personal links, revoke_links() takes them back
assignment  who is given which image, and which share of its pairs
rows        by_token() recognises the browser, asked() many at once; latest() tells who is new
course      progress(); complete(), leave() and end() close a session
erasure     erase() deletes a person; of_prolific() and of_link() say who that is
retention   forget() deletes who people are; keep_promises() does where a study says so
roster      counts(), listed(), and reason_to_refuse() for the page's first look

Only hashes of tokens are stored.
"""

from vseg.store.sessions.entry import (
    MOST_LINKS,
    Begun,
    Identity,
    begin,
    new_links,
    revoke_links,
    unused_links,
)
from vseg.store.sessions.erasure import Erased, check_known, erase, of_link, of_prolific
from vseg.store.sessions.lifecycle import Progress, complete, end, leave, progress
from vseg.store.sessions.listing import Counts, counts, listed, reason_to_refuse
from vseg.store.sessions.retention import Forgotten, forget, keep_promises
from vseg.store.sessions.rows import NO_SESSION, Asked, SessionRow, asked, by_token, latest

__all__ = [
    "MOST_LINKS", "NO_SESSION", "Asked", "Begun", "Counts", "Erased", "Forgotten", "Identity", "Progress", "SessionRow",
    "asked", "begin", "by_token", "check_known", "complete", "counts", "end", "erase", "forget", "keep_promises",
    "latest", "leave", "listed", "new_links", "of_link", "of_prolific", "progress", "reason_to_refuse",
    "revoke_links", "unused_links",
]  # fmt: skip
