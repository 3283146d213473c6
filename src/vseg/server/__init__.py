"""The web server of an experiment: the participants' routes, and the researchers' pages and API.

app                     all routes on one screen
participant_routes      the participants' routes: page, session, records, completion
records                 validation of the records that a participant's page sends
session_cache           sessions in memory, for the route that stores records
session_loader          sessions that are not cached, many in one query
source_limit            how many sessions one address may begin within a day
resume_policy           where a session continues after an interruption
pair_scheduler          choosing pairs of adaptive studies in background threads
session_choices         the pairs chosen for one session, and where more are needed
dashboard               the researchers' pages
api                     the researchers' API
auth                    researchers' passwords, cookies, links and tokens
simulated_participants  simulated participants that researchers start
demo                    the sample study of vseg demo, and its report
http                    reading JSON bodies, running database calls in threads, JSON errors
error_pages             errors as pages, for browsers
html                    pages from templates
formatting              numbers and times as text
compression             gzip for files and JSON
headers                 security headers, and the path prefix of a reverse proxy
timeouts                time and size limits of a connection, and where each of its requests ends
health                  GET /health, for monitoring
lazy_app                a part of the app that is loaded after the start
background              background tasks that run while the server does
retention               daily deletion of identities
log_throttle            a limit on repeated log messages
precompile              compiling the numerical kernels ahead
runner                  one process, several that share a socket, or a thread
sockets                 the socket on which the server listens
lab, kiosk              one participant on this computer (vseg lab), and the browser for them

Participants are identified by a token in a header, researchers by a cookie or a personal token; no route accepts both.
"""
