"""Write every page and picture that comes from the code to its file."""

from pathlib import Path

from docs.picture import picture
from docs.reference import pages

FOLDER = Path(__file__).parent


def generated() -> dict[Path, str]:
    """Return what each generated file holds."""
    return {
        FOLDER / "plan.svg": picture(),
        **{FOLDER / "reference" / name: text for name, text in pages().items()},
    }


if __name__ == "__main__":
    for file, text in generated().items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
