"""What a check of each format costs beside its library's decoder, and a resize beside OpenCV's, on one core."""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy
from PIL import Image

import rig
import samples

# Greatest ratio of our cost to theirs; none where none is promised.
BOUNDS = {"gif": 0.5, "webp": 1.05, "avif": 1.05}
RESIZE_BOUND, PSNR_MEDIAN, PSNR_WORST = 0.6, 40, 35
SIDE, QUALITY = 256, 90
LIBRARIES = "-ljpeg -lpng -ldeflate -lz -lm -lgif -lwebp -lwebpdemux -lavif -ldl".split()
ALONE = "avif, dav1d alone"
KINDS = (
    "jpeg, baseline", "jpeg, progressive", "png", "gif, still", "gif, flat", "gif, animated", "webp, lossy", "webp, lossless", "webp, alpha",
    "webp, animated", "avif",
)
THEIRS = {"jpeg": "libjpeg-turbo", "png": "libpng", "gif": "giflib", "webp": "libwebp", "avif": "libavif"}


def arguments():
    result = rig.table_parser("bench pixels", __doc__)
    result.add_argument("--count", type=rig.positive, default=1000, help="photographs to resize (1000)")
    result.add_argument("--samples", type=rig.positive, default=24, help="images of each kind to check (24)")
    result.add_argument("--reps", type=rig.positive, default=5, help="repetitions (5)")
    result.add_argument("--seed", type=int, default=1, help="of the images (1)")
    return result.parse_args()


def check_rows(options, program, kinds):
    rows = []
    for kind, paths in [*kinds.items(), (ALONE, kinds["avif"])]:
        first = ["-1"] if kind == ALONE else []
        done = subprocess.run([program, *first, str(max(3, options.reps)), *paths], check=True, capture_output=True, text=True)
        times = [[int(word) / 1000 for word in line.split("\t")[1:]] for line in done.stdout.splitlines()]
        ours, theirs = (sum(time[who] for time in times) / len(times) for who in (0, 1))
        ratios = [time[0] / time[1] for time in times]
        rows.append((kind, ours, theirs, ours / theirs, f"{min(ratios):.2f}-{max(ratios):.2f}", None if kind == ALONE else BOUNDS.get(kind.split(",")[0])))
        rig.say(f"{kind}: {ours:,.0f} us, its library {theirs:,.0f} us")
    return rows


def opencv(paths):
    """What img2dataset does with an image: full decode, INTER_AREA, a crop, JPEG. CPU seconds."""
    import cv2

    cv2.setNumThreads(1)
    began = time.process_time()
    for path in paths:
        with open(path, "rb") as file:
            image = cv2.imdecode(numpy.frombuffer(file.read(), numpy.uint8), cv2.IMREAD_COLOR)
        height, width = image.shape[:2]
        scale = SIDE / min(width, height)
        image = cv2.resize(image, (max(SIDE, round(width * scale)), max(SIDE, round(height * scale))), interpolation=cv2.INTER_AREA)
        top, left = (image.shape[0] - SIDE) // 2, (image.shape[1] - SIDE) // 2
        done, data = cv2.imencode(".jpg", image[top : top + SIDE, left : left + SIDE], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        with open(path + ".cv", "wb") as file:
            file.write(data.tobytes())
        os.unlink(path + ".cv")
    return time.process_time() - began


class Resizing:
    """Photographs in a cache, resized by the tool; and by OpenCV from their files."""

    def __init__(self, bench, options, random):
        self.bench, self.options = bench, options
        folder = bench.path("photographs")
        os.makedirs(folder)
        self.paths = []
        for number in range(options.count):
            short, long = int(random.integers(512, 1200)), int(random.integers(512, 1700))
            width, height = (max(short, long), short) if number % 3 else (short, max(short, long))
            path = f"{folder}/{number}.jpg"
            samples.photograph(random, width, height).save(path, "JPEG", quality=int(random.integers(85, 93)))
            self.paths.append(path)
            if number % 200 == 199:
                rig.say(f"{number + 1:,} photographs")
        base = bench.serve(folder)
        self.list = bench.write("photographs.txt", [f"{base}/{number}.jpg" for number in range(options.count)])
        self.cache = bench.path("cache")
        self.run("--durability", "none")

    def run(self, *options):
        words = [self.bench.program("prefetch-coord"), "run", self.list, "--cache", self.cache, "-n", "1", "--allow-net", "127.0.0.0/8"]
        return self.bench.run([*words, "--max-per-host", "0", "--quiet", "--validate", "structure", *options])

    def resize(self, repetition, kind):
        """CPU seconds of the whole command over the cached originals. The quality makes another variant of each repetition."""
        size = ["--resize", f"{SIDE}x{SIDE}", "--fit", "cover", "--image-format", kind, "--durability", "none", "--keep-original"]
        quality = [] if kind == "png" else ["--quality", str(QUALITY)]
        _, cpu, _ = self.run(*size, *quality, "--name", f"{kind}-{repetition}")
        return cpu

    def forget(self, kind, repetition):
        """Takes the variants away, so that the next repetition makes them again."""
        table = self.table(kind, repetition)
        for path in table.values():
            os.unlink(path)

    def table(self, kind, repetition):
        """Path of the variant of each photograph, by number."""
        out = self.bench.path("out.jsonl")
        words = [self.bench.program("prefetch-coord"), "export", f"{kind}-{repetition}", "--format", "jsonl", "-o", out, "--cache", self.cache]
        self.bench.run([*words, "--force"] if os.path.exists(out) else words)
        with open(out, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        os.unlink(out)
        return {int(row["url"].rsplit("/", 1)[1].split(".")[0]): os.path.join(self.cache, row["path"]) for row in rows}

    def psnr(self):
        """In dB, of our pixels before encoding, against a Lanczos of the whole image by Pillow."""
        self.resize(0, "png")
        values = []
        for number, path in self.table("png", 0).items():
            ours = numpy.asarray(Image.open(path).convert("RGB"), numpy.float64)
            whole = Image.open(self.paths[number]).convert("RGB")
            side = min(whole.size)
            left, top = (whole.width - side) / 2, (whole.height - side) / 2
            theirs = whole.resize((SIDE, SIDE), Image.LANCZOS, box=(left, top, left + side, top + side))
            error = numpy.mean((ours - numpy.asarray(theirs, numpy.float64)) ** 2)
            values.append(99 if error == 0 else 10 * math.log10(255**2 / error))
        return statistics.median(values), min(values)

    def rows(self):
        ours, theirs = [], []
        for repetition in range(self.options.reps):
            ours.append(self.resize(repetition, "jpeg"))
            self.forget("jpeg", repetition)
            theirs.append(opencv(self.paths))
            rig.say(f"{repetition + 1}/{self.options.reps} resize: {ours[-1]:.2f} s, OpenCV {theirs[-1]:.2f} s")
        count = self.options.count
        cost, other = statistics.median(ours) / count * 1e6, statistics.median(theirs) / count * 1e6
        ratios = [one / two for one, two in zip(ours, theirs)]
        return cost, other, cost / other, f"{min(ratios):.2f}-{max(ratios):.2f}"


def main():
    options = arguments()
    random = numpy.random.default_rng(options.seed)
    with rig.Rig(options) as bench:
        folder = bench.path("samples")
        os.makedirs(folder)
        source = pathlib.Path(__file__).resolve().parents[3] / "Sources/CImageCodec"
        program = bench.compile("pixels", pathlib.Path(__file__).with_suffix(".c"), *source.glob("*.c"), f"-I{source}/include", "-std=gnu17", *LIBRARIES)
        rows = check_rows(options, program, samples.write(folder, options.samples, random, KINDS))
        resizing = Resizing(bench, options, random)
        cost, other, ratio, spread = resizing.rows()
        median, worst = resizing.psnr()
    lines = rig.heading("pixels", f"CPU of an image on one core, {options.samples} of each kind, medians of {options.reps}")
    lines += ["| what | ours us | theirs us | ratio (min-max) | bound | kept |", "|---|---:|---:|---|---:|---|"]
    broken = False
    for kind, mine, its, factor, range_, bound in rows:
        kept = "-" if bound is None else "yes" if factor <= bound else "NO"
        broken |= kept == "NO"
        who = THEIRS[kind.split(",")[0]]
        lines.append(f"| check {kind}; decode by {who} | {mine:,.0f} | {its:,.0f} | {factor:.2f} ({range_}) | {bound or '-'} | {kept} |")
    kept = "yes" if ratio <= RESIZE_BOUND else "NO"
    lines.append(
        f"| {SIDE}x{SIDE} cover crop to JPEG {QUALITY} of {options.count:,} photographs; OpenCV, INTER_AREA | {cost:,.0f} | {other:,.0f} | "
        f"{ratio:.2f} ({spread}) | {RESIZE_BOUND} | {kept} |"
    )
    good = median >= PSNR_MEDIAN and worst >= PSNR_WORST
    broken |= kept == "NO" or not good
    lines += [
        "",
        f"PSNR of the pixels of those crops against a full-size Lanczos by Pillow: median {median:.1f} dB, worst {worst:.1f} dB; "
        f"bounds {PSNR_MEDIAN} and {PSNR_WORST}, {'kept' if good else 'NOT kept'}. A resize is that of `prefetch-coord run --resize` over cached "
        "originals, its Redis and its files included. AVIF is checked by dav1d and libaom, of which only libaom sees most damage of AV1 data, so its "
        "library is measured with both, and with dav1d alone.",
    ]
    rig.publish(options, "bench pixels", lines)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
