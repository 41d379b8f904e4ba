"""Many addresses of few images, and lists of them."""

import os

IMAGES = 1_000


class Images:
    """A folder of a thousand small images, each under as many names as are wanted (hard links)."""

    def __init__(self, rig, names=IMAGES):
        source = f"{rig.work}/images"
        if not os.path.isdir(source):
            rig.run([rig.program("origin"), "generate", source, "--count", str(IMAGES), "--median", "1000"], "generate")
        with open(f"{source}/manifest.tsv", encoding="ascii") as file:
            paths = [line.split("\t", 1)[0] for line in file]
        self.folder = f"{rig.work}/served"
        self.paths = []
        for number in range(-(-names // IMAGES)):
            folders = set()
            for path in paths[: names - number * IMAGES]:
                name = f"{number}/{path}"
                folder = f"{self.folder}/{os.path.dirname(name)}"
                if folder not in folders:
                    os.makedirs(folder, exist_ok=True)
                    folders.add(folder)
                if not os.path.exists(f"{self.folder}/{name}"):
                    os.link(f"{source}/{path}", f"{self.folder}/{name}")
                self.paths.append(name)


def write(path, lines):
    """Writes a list in blocks; returns its bytes."""
    with open(path, "w", encoding="ascii", buffering=1 << 20) as file:
        file.writelines(lines)
        return file.tell()
