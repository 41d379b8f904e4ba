"""A list with a planted outcome for each line, and what it must have left."""

import hashlib
import os
import re

from outcomes import IMAGE


class Batch:
    def __init__(self, world, queue, name, folder, good=38, slow=4, down=0, gone=0, bad=True, first=0):
        self.name, self.ends = name, "done"
        self.list = os.path.join(folder, name + ".txt")
        tag = f"{queue}-{name}"
        pictures = world.pictures
        # URL, outcomes it may have, digest of its image, whether it goes onto the blacklist.
        rows = []
        for n in range(good):
            picture = pictures[(n + first) % len(pictures)]
            rows.append((f"{world.good}/{picture}?{tag}-{n}", IMAGE, world.digests[picture], False))
        rows += [(f"{world.bad}/fault/slow/{tag}-{n}.jpg", IMAGE, world.slow_digest, False) for n in range(slow)]
        rows += rows[:4]
        rows += [(f"{world.bad}/fault/gone/{tag}-{n}.jpg", {"httpError"}, None, True) for n in range(gone)]
        if bad:
            rows += [(f"{world.bad}/fault/404/{tag}-{n}.jpg", {"httpError"}, None, True) for n in range(3)]
            rows += [(f"{world.bad}/fault/html/{tag}-{n}.jpg", {"badImage"}, None, True) for n in range(2)]
            rows += [(f"{world.bad}/fault/cut/{tag}.jpg", {"truncated"}, None, False), ("no URL at all", {"invalidURL"}, None, False)]
            rows += [(f"http://127.0.0.1:{world.closed_port}/{tag}.png", {"connect"}, None, False), ("http://10.1.2.3/a.png", {"refused"}, None, False)]
        rows += [(f"{world.down}/fault/503/{tag}-{n}.jpg", {"httpError"}, None, False) for n in range(down)]
        # In one order for all, whatever the ports of this run: which job has which URL is no luck either.
        rows.sort(key=lambda row: hashlib.sha256((re.sub(r":[0-9]+/", "/", row[0].replace(tag, "")) + str(first)).encode()).digest())
        self.rows = rows
        with open(self.list, "w", encoding="utf-8") as file:
            file.writelines(row[0] + "\n" for row in rows)

    @property
    def total(self):
        return len(self.rows)

    @property
    def failed(self):
        return {url for url, _, _, listed in self.rows if listed}
