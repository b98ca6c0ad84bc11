"""The npm packages that the engine works with: where they are, in which versions, and what to install."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.engines import EngineError
from pipeline.engines.stryker_js.runners import PLUGINS, Runner

CORE = f"{PLUGINS}/core"


def package_of(root: Path, package: str) -> Path:
    """Where Node.js finds a package: in the project, or above it. Raises EngineError."""
    found = _find(root, package)
    if found:
        return found
    core = _find(root, CORE) if package.startswith(PLUGINS) else None
    wanted = f"{package}@{_version(core)}" if core else package
    raise EngineError(
        f"{package} is not installed in {root}: run `npm install --save-dev {wanted}`, or name the task that "
        "installs it under engine.needs"
    )


def versions(root: Path, runner: Runner) -> dict[str, str]:
    """What a runner needs -> its version. Raises EngineError where one is missing, or does not go with the core."""
    found = {package: _version(package_of(root, package)) for package in runner.packages}
    core, plugin, *_ = found
    if found[core] != found[plugin]:
        raise EngineError(
            f"{plugin} is {found[plugin]} and {core} {found[core]}, which go together only at one version: run "
            f"`npm install --save-dev {plugin}@{found[core]}`"
        )
    return found


def is_installed(root: Path, package: str) -> bool:
    return _find(root, package) is not None


def _find(root: Path, package: str) -> Path | None:
    folders = (folder / "node_modules" / package for folder in (root, *root.parents))
    return next((folder for folder in folders if (folder / "package.json").is_file()), None)


def _version(package: Path) -> str:
    return str(json.loads((package / "package.json").read_bytes())["version"])
