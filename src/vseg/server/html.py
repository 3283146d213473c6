"""Render the pages in templates/."""

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
    """Render a template with these values and `root`, the path that all links of the page begin with."""
    return TEMPLATES.TemplateResponse(request, template, {"root": root_path(request), **values}, status)


def root_path(request: Request) -> str:
    """Return the path under which the browser sees this server: "" or a prefix such as "/vseg"."""
    return request.base_url.path.rstrip("/")


async def favicon(request: Request) -> Response:
    """Redirect /favicon.ico, which browsers request by themselves, to the icon."""
    return RedirectResponse(f"{root_path(request)}/pages/favicon.svg", 301)
