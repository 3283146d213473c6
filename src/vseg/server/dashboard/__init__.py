"""The dashboard: the pages on which researchers watch and control their studies.

context         what all pages share: the login, forms, redirects, rendering
login           setting up a researcher, logging in and out, one-time links
studies         the list of studies, and creating one
study           one study: progress, current map, data quality, participants, actions
image           the maps of one image
participant     one participant, and erasing them
data            the export, links for participants, the study file
settings        the password, API tokens, researchers
study_overview  the current state of a study, computed once for all browsers
posteriors      the posterior of an image as pages show it
charts          the data of charts, with a sentence for each

Pages work without scripts. With them, the live parts of a page are reloaded from the same route and the same template.
Every form contains a token that belongs to the browser's cookie.
"""

from vseg.server.dashboard.context import menu_values
from vseg.server.dashboard.data import create_links, data_page, revoke_links
from vseg.server.dashboard.image import image_page
from vseg.server.dashboard.login import (
    api_page,
    log_in_with_link,
    log_in_with_password,
    log_out,
    set_up_researcher,
)
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
from vseg.server.dashboard.study_overview import OverviewCache

__all__ = [
    "OverviewCache",
    "api_page",
    "change_password",
    "change_status",
    "create_links",
    "create_researcher_link",
    "create_study",
    "create_token",
    "data_page",
    "erase_participant",
    "image_page",
    "log_in_with_link",
    "log_in_with_password",
    "log_out",
    "menu_values",
    "new_study_page",
    "participant_page",
    "remove_researcher",
    "revoke_links",
    "revoke_token",
    "set_up_researcher",
    "settings_page",
    "start_simulation",
    "studies_page",
    "study_page",
]
