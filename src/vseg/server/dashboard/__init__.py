"""The researcher's pages: how people see a study that runs, and steer it.

visiting   who asks, forms of our own, pages and the live parts of them
door       the first login, logging in and out, one-time links
studies    all studies, and a new one
study      one study, its people, its live map, and what can be done with it
image      the maps of one image, by segments, smoothness and participant
belief     the posterior of an image, as a page shows it
person     one participant, and erasing them
data       the export, the links, the study file
settings   the password, API tokens, researchers
glance     what a study looks like at this moment, computed once for all who look
charts     numbers for the charts, with a sentence for each

Every form brings the browser's token; every page that shows data needs the login, and leads to it. A page is whole
without script; with it, its live parts are fetched again by themselves, by the same route and template.
"""

from vseg.server.dashboard.context import menu_values
from vseg.server.dashboard.data import create_links, data_page, revoke_links
from vseg.server.dashboard.image import image_page
from vseg.server.dashboard.login import api_page, log_in, log_out, set_up_researcher, sign_in
from vseg.server.dashboard.overview import OverviewCache
from vseg.server.dashboard.participant import erase_participant, participant_page
from vseg.server.dashboard.settings import (
    change_password,
    create_researcher_link,
    create_token,
    remove_researcher,
    revoke_token,
    settings_page,
)
from vseg.server.dashboard.studies import create_study, new_study_page, studies_page
from vseg.server.dashboard.study import change_status, start_simulation, study_page

__all__ = [
    "OverviewCache", "api_page", "change_password", "change_status", "create_study", "data_page", "erase_participant", "image_page", "create_links", "log_in",
    "log_out", "menu_values", "new_study_page", "create_researcher_link", "create_token", "participant_page", "remove_researcher",
    "revoke_links", "revoke_token", "settings_page", "set_up_researcher", "sign_in", "start_simulation", "studies_page", "study_page",
]  # fmt: skip
