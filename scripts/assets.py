"""Write down the hashes of the page's files, so that no byte of them changes unnoticed: run it after every change."""

from __future__ import annotations

import json
import os

from taskyard.ui.web.assets import MANIFEST, compute_manifest, static_folder


def main() -> None:
    path = os.path.join(static_folder(), MANIFEST)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(compute_manifest(static_folder()), indent=2) + "\n")
    print(f"{path} is written.")


if __name__ == "__main__":
    main()
