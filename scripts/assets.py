"""Write down the hashes of the page's files, so that no byte of them changes unnoticed: run it after every change."""

from __future__ import annotations

import json
import os

from taskyard.web.assets import MANIFEST, folder, written


def main() -> None:
    path = os.path.join(folder(), MANIFEST)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(written(folder()), indent=2) + "\n")
    print(f"{path} is written.")


if __name__ == "__main__":
    main()
