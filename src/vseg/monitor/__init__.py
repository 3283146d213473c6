"""A study as it runs: its answers in memory and what they show, for pages and the API.

answers            Answers: all responses of a study as columns
live_data          LiveData: keeps them up to date, reading only what is new (into buffer)
progress           StudyProgress: counts, timing and consistency of a study
participants       ParticipantSummary: one session, with reasons to check it
summaries          shares, distributions and timing, as pages show them
maps               maps of an image from its answers so far
contours           contours that participants drew, and their F
posterior_summary  the posterior of an image; posterior_process computes it in a child process (posterior_worker)
tiles              small pictures of maps, without matplotlib
"""

from vseg.monitor.answers import Answers, LiveSession
from vseg.monitor.contours import Drawing, DrawingScores, load_contours, score_drawings
from vseg.monitor.live_data import LiveData
from vseg.monitor.maps import MapReadiness, check_map_readiness, fit_maps
from vseg.monitor.participants import ParticipantSummary, summarise_participant, summarise_participants
from vseg.monitor.posterior_process import PosteriorService, PosteriorStatus
from vseg.monitor.posterior_summary import PosteriorSummary
from vseg.monitor.progress import ChoiceCounts, ImageProgress, StudyProgress, compute_progress, count_choices
from vseg.monitor.summaries import Distribution, Share, Timing

__all__ = [
    "Answers", "ChoiceCounts", "Distribution", "Drawing", "DrawingScores", "ImageProgress", "LiveData", "LiveSession",
    "MapReadiness", "ParticipantSummary", "PosteriorService", "PosteriorStatus", "PosteriorSummary", "Share",
    "StudyProgress", "Timing", "check_map_readiness", "compute_progress", "count_choices", "fit_maps", "load_contours",
    "score_drawings", "summarise_participant", "summarise_participants",
]  # fmt: skip
