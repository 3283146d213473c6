"""Pages made from templates/, with the addresses and the form token they need."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates

from vseg.server.formatting import FILTERS

TEMPLATES = Jinja2Templates(Path(str(files("vseg.server"))) / "templates")
TEMPLATES.env.filters.update(FILTERS)
TEMPLATES.env.trim_blocks = TEMPLATES.env.lstrip_blocks = True


def render_template(request: Request, template: str, /, *, status: int = 200, **values: Any) -> Response:
    """The page of this template; `root` is the path all our addresses begin with."""
    return TEMPLATES.TemplateResponse(request, template, {"root": root_path(request), **values}, status)


def root_path(request: Request) -> str:
    """The prefix our pages lie under, as the browser sees it: "" or "/path"."""
    return request.base_url.path.rstrip("/")


async def favicon(request: Request) -> Response:
    """Where browsers look for the icon by themselves."""
    return RedirectResponse(f"{root_path(request)}/pages/favicon.svg", 301)
