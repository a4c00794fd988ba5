"""Real git repositories and folders, as sources of document sets."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Writer",
    "GIT_AUTHOR_EMAIL": "writer@example.com",
    "GIT_COMMITTER_NAME": "Writer",
    "GIT_COMMITTER_EMAIL": "writer@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def write_tree(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder; returns the folder."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Repository:
    """A git repository with a work tree, served by its file URL."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, files: Mapping[str, str], branch: str = "main") -> "Repository":
        folder.mkdir(parents=True)
        repository = cls(folder)
        repository.git("init", "-q", "-b", branch)
        repository.commit(files)
        return repository

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **_IDENTITY},
            check=True,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str], message: str = "Change") -> str:
        """Write files, commit everything, and return the full SHA."""
        write_tree(self.folder, files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
