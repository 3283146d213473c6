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
    MAX_LINKS,
    Identity,
    StartedSession,
    begin,
    count_unused_links,
    create_links,
    revoke_links,
)
from vseg.store.sessions.erasure import (
    ErasedRows,
    check_participant,
    erase,
    find_by_link,
    find_by_prolific_id,
)
from vseg.store.sessions.lifecycle import SessionProgress, complete, end, get_progress, leave
from vseg.store.sessions.listing import SessionCounts, count_sessions, get_refusal_reason, list_sessions
from vseg.store.sessions.retention import ForgottenIdentities, apply_retention, forget_identities
from vseg.store.sessions.rows import (
    NO_SESSION_MESSAGE,
    SessionRow,
    SessionTrials,
    find_by_token_hashes,
    get_by_token,
    list_latest_token_hashes,
)

__all__ = [
    "MAX_LINKS", "NO_SESSION_MESSAGE", "SessionTrials", "StartedSession", "SessionCounts", "ErasedRows", "ForgottenIdentities", "Identity", "SessionProgress", "SessionRow",
    "find_by_token_hashes", "begin", "get_by_token", "check_participant", "complete", "count_sessions", "end", "erase", "forget_identities", "apply_retention",
    "list_latest_token_hashes", "leave", "list_sessions", "create_links", "find_by_link", "find_by_prolific_id", "get_progress", "get_refusal_reason",
    "revoke_links", "count_unused_links",
]  # fmt: skip
