"""Another revision of this project, exported and compiled, so that its brokers and clients can be measured."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks import ROOT

EXPORTS = ROOT / ".build" / "revisions"


def installed_revision(revision: str) -> Path:
    """A folder with the revision's packages and their compiled twins; made once per commit, below .build."""
    commit = _git("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    packages = EXPORTS / commit
    if not packages.exists():
        print(f"exporting and compiling {revision} ({commit[:10]})", flush=True)
        EXPORTS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=EXPORTS) as directory:
            tree, target = Path(directory) / "tree", Path(directory) / "packages"
            with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit))) as archive:
                archive.extractall(tree, filter="data")
            command = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                str(target),
                str(tree),
            ]
            subprocess.run(command, check=True)
            sources = sorted((tree / "src").rglob("*.pyx"))
            missing = [path.name for path in sources if not any(target.rglob(f"{path.stem}.*.so"))]
            if missing:
                raise RuntimeError(
                    f"not compiled: {', '.join(missing)}; pure twins would be compared with compiled ones"
                )
            target.rename(packages)
    return packages


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout
