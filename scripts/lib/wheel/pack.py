"""Packs a wheel: pack.py VERSION TAG FOLDER OUT. In FOLDER are `scripts` and `data`, as pip installs them, and what goes beside METADATA in `info`."""
import base64
import hashlib
import os
import re
import sys
import time
import zipfile
from pathlib import Path

version, tag, folder, out = sys.argv[1:]
here, name = Path(__file__).resolve().parents[3], "prefetch_images"
about = f"{name}-{version}"
info, folder = f"{about}.dist-info", Path(folder)
files = {f"{about}.data/{path.relative_to(folder)}": path for kind in ("scripts", "data") for path in folder.glob(f"{kind}/**/*")}
files |= {f"{info}/{path.relative_to(folder / 'info')}": path for path in folder.glob("info/**/*")}
contents = {place: (path.read_bytes(), path.stat().st_mode) for place, path in files.items() if path.is_file()}
page = (here / "README.md").read_text().split("## Documentation")[0].replace("[简体中文](README.zh-CN.md)\n\n", "")
# Its pictures and its links lead to files that are not there.
description = re.sub(r"!\[.*?\]\(.*?\)\n|\[([^]]+)\]\((?!https:)[^)]+\)", r"\1", page)
contents[f"{info}/METADATA"] = f"""Metadata-Version: 2.4
Name: prefetch-images
Version: {version}
Summary: Download millions of image URLs into a cache of complete, verified images
License-Expression: MIT AND Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND LGPL-3.0-or-later AND IJG AND Zlib AND curl AND libpng-2.0
{"".join(f"License-File: {one.relative_to(folder / 'info' / 'licenses')}" + chr(10) for one in sorted(folder.glob("info/licenses/*")))}\
Keywords: images,dataset,download,webdataset,img2dataset
Classifier: Operating System :: POSIX :: Linux
Requires-Python: >=3.8
Provides-Extra: parquet
Requires-Dist: duckdb-cli>=1.4; extra == "parquet"
Description-Content-Type: text/markdown

{description}
""".encode(), 0o644
contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: prefetch-scripts-lib-wheel\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


record = [f"{place},sha256={digest(content)},{len(content)}" for place, (content, _) in sorted(contents.items())]
contents[f"{info}/RECORD"] = ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode(), 0o644
made = f"{out}/{about}-{tag}.whl"
# What is in dist-info comes last, for those that read a wheel from its end.
with zipfile.ZipFile(made, "w") as archive:
    for place, (content, mode) in sorted(contents.items(), key=lambda one: (one[0].startswith(info), one[0])):
        entry = zipfile.ZipInfo(place, time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6])
        entry.external_attr = (0o100755 if mode & 0o100 else 0o100644) << 16
        archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
print(made)
