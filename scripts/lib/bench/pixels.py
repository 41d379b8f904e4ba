"""What a check of each format costs beside its library's decoder, and a resize beside OpenCV's, on one core."""

import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy
from PIL import Image

import left
import rig
import samples

# Greatest ratio of our cost to theirs; none where none is promised.
BOUNDS = {"gif": 0.5, "webp": 1.05, "avif": 1.05}
RESIZE_BOUND = 0.6
SIDE, QUALITY = 256, 90
LIBRARIES = "-ljpeg -lpng -ldeflate -lz -lm -lgif -lwebp -lwebpdemux -lavif -ldl".split()
KINDS = (
    "jpeg, baseline", "jpeg, progressive", "png", "gif, still", "gif, flat", "gif, animated", "webp, lossy", "webp, lossless", "webp, alpha",
    "webp, animated", "avif",
)
THEIRS = {"jpeg": "libjpeg-turbo", "png": "libpng", "gif": "giflib", "webp": "libwebp", "avif": "libavif"}


def check_rows(options, program, kinds):
    rows = []
    for kind, paths in kinds.items():
        done = subprocess.run([program, str(max(3, options.reps)), *paths], check=True, capture_output=True, text=True)
        times = [[int(word) / 1000 for word in line.split("\t")[1:]] for line in done.stdout.splitlines()]
        ours, theirs = (sum(time[who] for time in times) / len(times) for who in (0, 1))
        ratios = [time[0] / time[1] for time in times]
        rows.append((kind, ours, theirs, ours / theirs, f"{min(ratios):.2f}-{max(ratios):.2f}", BOUNDS.get(kind.split(",")[0])))
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


def resizing(bench, options, random):
    """CPU of a resize of photographs that are cached, and by OpenCV of their files: microseconds of each, the ratio, and its spread."""
    folder, cache, paths = bench.path("photographs"), bench.path("cache"), []
    os.makedirs(folder)
    for number in range(options.count):
        short, long = int(random.integers(512, 1200)), int(random.integers(512, 1700))
        width, height = (max(short, long), short) if number % 3 else (short, max(short, long))
        paths.append(f"{folder}/{number}.jpg")
        samples.photograph(random, width, height).save(paths[-1], "JPEG", quality=int(random.integers(85, 93)))
        if number % 200 == 199:
            rig.say(f"{number + 1:,} photographs")
    base = bench.serve(folder)
    listed = bench.write("photographs.txt", [f"{base}/{number}.jpg" for number in range(options.count)])

    def run(*more):
        return bench.one_worker(listed, cache, "--validate", "structure", *more)[1]

    run()
    originals, ours, theirs = set(left.files(cache)), [], []
    size = ["--resize", f"{SIDE}x{SIDE}", "--fit", "cover", "--image-format", "jpeg", "--quality", str(QUALITY), "--keep-original"]
    for repetition in range(options.reps):
        ours.append(run(*size, "--name", f"resize-{repetition}"))
        # The next repetition makes them again.
        for path in set(left.files(cache)) - originals:
            os.unlink(path)
        theirs.append(opencv(paths))
        rig.say(f"{repetition + 1}/{options.reps} resize: {ours[-1]:.2f} s, OpenCV {theirs[-1]:.2f} s")
    cost, other = (statistics.median(seconds) / options.count * 1e6 for seconds in (ours, theirs))
    ratios = [one / two for one, two in zip(ours, theirs)]
    return cost, other, cost / other, f"{min(ratios):.2f}-{max(ratios):.2f}"


def main():
    options = rig.image_options("bench pixels", __doc__, 24, 1000, "photographs to resize")
    random = numpy.random.default_rng(options.seed)
    with rig.Rig(options) as bench:
        folder = bench.path("samples")
        os.makedirs(folder)
        source = pathlib.Path(__file__).resolve().parents[3] / "Sources/CImageCodec"
        program = bench.compile("pixels", pathlib.Path(__file__).with_suffix(".c"), *source.glob("*.c"), f"-I{source}/include", "-std=gnu17", *LIBRARIES)
        rows = check_rows(options, program, samples.write(folder, options.samples, random, KINDS))
        cost, other, ratio, spread = resizing(bench, options, random)
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
    broken |= kept == "NO"
    lines += [
        "",
        "A resize is that of `prefetch-coord run --resize` over cached originals, its Redis and its files included. AVIF is checked by dav1d and libaom, "
        "of which only libaom sees most damage of AV1 data, so its library is measured with both.",
    ]
    rig.publish(options, "bench pixels", lines)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
