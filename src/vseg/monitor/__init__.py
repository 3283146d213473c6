"""A study as it runs: its answers in memory, how far it is, and what they show. For pages and for the API.

answers   Answers: all responses of a study as columns
watch     Watch: keeps them up to date, reading only what is new
progress  one study at a glance, as a Progress
people    one Person a session, with the reasons for a second look
adapted   how the pairs of an adaptive study's answers came about
maps      the maps of an image as they stand; contours as participants drew them
believed  what the posterior says of an image; posteriors.py has it worked out in the background, by believing.py
tiles     small pictures of maps, without matplotlib
"""

from vseg.monitor.adaptive_progress import Adapted, adapted
from vseg.monitor.answers import Answers, SessionHead
from vseg.monitor.live_data import Watch
from vseg.monitor.maps import Contours, Need, contours, fitted, need
from vseg.monitor.participants import Person, people, person
from vseg.monitor.posterior_process import Posteriors, Standing
from vseg.monitor.posterior_summary import Believed
from vseg.monitor.progress import ImageProgress, Progress, progress
from vseg.monitor.summaries import Distribution, Share, Timing

__all__ = [
    "Adapted", "Answers", "Believed", "Contours", "Distribution", "ImageProgress", "Need", "Person", "Posteriors",
    "Progress", "SessionHead", "Share", "Standing", "Timing", "Watch", "adapted", "contours", "fitted", "need",
    "people", "person", "progress",
]  # fmt: skip
