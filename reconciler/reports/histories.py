"""The histories of fleet pages between pipelines: files of one commit without a parent, at a git ref of the project."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.memory.exchange import Exchange
from reconciler.system import clock

REF = "refs/reconciler/fleet"
"""Not a branch: each run replaces its one commit, which has no parent, so that the repository does not grow."""

TREE_ENTRY = re.compile(r"100644 blob ([0-9a-f]+)\t([^\0/]+)")
PERSON = "reconciler <reconciler@localhost>"


@dataclass(slots=True)
class Histories:
    """The histories at the ref.

    Attributes:
        repository: fetches and pushes the files.
    """

    repository: Exchange
    _before: Mapping[str, str] = field(default_factory=dict)

    def fetch(self) -> Mapping[str, str]:
        """Return the texts of the histories by file; no texts if the ref does not exist.

        Raises:
            InventoryUnreadable: all credentials were refused, or there is no connection.
        """
        self.repository.fetch_ref(REF)
        listing = self.repository.run(["ls-tree", "-z", REF]).stdout.decode(errors="replace").split("\0")
        blobs = {entry[2]: entry[1] for entry in map(TREE_ENTRY.fullmatch, listing) if entry}
        self._before = {
            name: self.repository.run(["cat-file", "blob", blob]).stdout.decode(errors="replace")
            for name, blob in blobs.items()
        }
        return self._before

    def push(self, texts: Mapping[str, str]) -> str:
        """Replace some of the fetched histories; return the reason if that failed, else an empty text.

        Unchanged texts are not pushed.
        """
        now = {**self._before, **texts}
        if now == self._before:
            return ""
        # written as git objects: the index and the work tree of the job stay as they are
        entries = ((name, self._written(["--stdin"], text)) for name, text in now.items())
        tree = "".join(f"100644 blob {blob}\t{name}\0" for name, blob in entries)
        made = self.repository.run(["mktree", "-z"], tree.encode()).stdout.decode().strip()
        when = f"{int(clock.now().timestamp())} +0000"
        lines = (f"tree {made}", f"author {PERSON} {when}", f"committer {PERSON} {when}", "")
        commit = self._written(["-t", "commit", "--stdin"], "\n".join((*lines, "Keep the histories of fleet pages\n")))
        refusals = []
        for login in self.repository.remote.pushing:
            refusal = self.repository.replace_ref(REF, commit, login)
            if not refusal:
                return ""
            refusals.append(refusal)
        return "; ".join(refusals)

    def _written(self, git_options: list[str], text: str) -> str:
        return self.repository.run(["hash-object", "-w", *git_options], text.encode()).stdout.decode().strip()
