"""The server of an experiment: what participants' pages talk to, and the researcher's own pages.

app           every route on one screen
later         a part that is loaded once people are served
beside        work that goes on while the server runs
participants  the way of one participant: session, records, completion
records       what a participant's page may send, checked once
known         sessions in memory, for the hot route
recall        sessions that are not, many in one query; those of other workers before they come
standing      where a session goes on after a pause
dashboard     the researcher's pages
research      the researcher's API
auth          passwords, the one-time link, signed cookies, and requests from other sites
wire          JSON in under a cap, one shape of errors out
problems      errors as pages, for those who read
compressed    files and JSON for browsers that take gzip
html          pages from templates
words         numbers and times as people read them
headers       what every answer carries, and the path prefix of a reverse proxy
warm          compiles ahead what maps and pairs need
run           one process, or several that share the socket
background    the server in a thread, beside something else

Participants have a token, researchers a cookie; neither opens the other's door.
"""
