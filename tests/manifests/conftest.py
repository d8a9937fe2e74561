"""A folder in which a test writes manifests and from which it reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ManifestErrors
from reconciler.kinds import all_kinds
from reconciler.manifests import Inputs, Manifests, read_manifests
from reconciler.model.kind import Kinds

KINDS: Kinds = all_kinds()


class Folder:
    """The working directory."""

    def write(self, **files: str) -> None:
        """Write files by name; `a_yaml` is `a.yaml`, `a_yaml_j2` is `a.yaml.j2`."""
        for name, text in files.items():
            self.put(name.replace("_", "."), text)

    def put(self, path: str, content: str | bytes) -> None:
        """Write one file, making its folders."""
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read(
        self,
        *paths: str,
        kinds: Kinds = KINDS,
        values: Mapping[str, Any] | None = None,
        env_names: tuple[str, ...] = (),
    ) -> Manifests:
        """Read manifests that are right."""
        inputs = Inputs([Path(path) for path in paths or (".",)], kinds, settings=values or {}, env_names=env_names)
        return read_manifests(inputs)

    def faults(self, *paths: str, **options: Any) -> str:
        """Read manifests that are wrong and return all that is to be said of them, by place."""
        return "\n".join(map(str, self.errors(*paths, **options).diagnostics))

    def errors(self, *paths: str, **options: Any) -> ManifestErrors:
        """Read manifests that are wrong and return what is raised."""
        with pytest.raises(ManifestErrors) as caught:
            self.read(*paths, **options)
        return caught.value


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """An empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return Folder()
