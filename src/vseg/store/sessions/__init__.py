"""Sessions: who takes part, what they are assigned, how far they are, and how the session ends.

entry       begin() starts or resumes a session and returns its token; personal links
assignment  which images, and which unit of each, a new session is assigned
rows        find sessions by id or token
lifecycle   get_progress(); complete(), leave() and end() finish a session
erasure     erase() deletes a participant; find_by_prolific_id() and find_by_link() find one
retention   forget_identities() deletes identities; apply_retention() does so in every study after the promised time
listing     count_sessions(), list_sessions(), get_refusal_reason(), get_start_limits()

Only the hashes of tokens are stored.
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
from vseg.store.sessions.lifecycle import SessionProgress, complete, end, get_progress, is_too_fast, leave
from vseg.store.sessions.listing import (
    ImageSessionCounts,
    SessionCounts,
    SessionSummary,
    StartLimits,
    count_sessions,
    get_refusal_reason,
    get_start_limits,
    list_sessions,
    note_refused_source,
)
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
    "MAX_LINKS", "NO_SESSION_MESSAGE", "ErasedRows", "ForgottenIdentities", "Identity", "ImageSessionCounts",
    "SessionCounts", "SessionProgress", "SessionRow", "SessionSummary", "SessionTrials", "StartLimits",
    "StartedSession", "apply_retention", "begin", "check_participant", "complete", "count_sessions",
    "count_unused_links", "create_links", "end", "erase", "find_by_link", "find_by_prolific_id", "find_by_token_hashes",
    "forget_identities", "get_by_token", "get_progress", "get_refusal_reason", "get_start_limits",
    "is_too_fast", "leave", "list_latest_token_hashes", "list_sessions", "note_refused_source", "revoke_links",
]  # fmt: skip
