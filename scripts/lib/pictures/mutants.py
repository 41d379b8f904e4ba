"""Damaged pictures of every kind: what the tool accepts of them, verified at `decode`, other decoders have to accept. Prints a table and exits
with 1 if the tool accepts what a judge rejects, unless a rule below says why the judge is wrong and the mutant proves it."""

import collections
import io
import pathlib
import re
import sys
import warnings

import cv2
import numpy
import PIL
from PIL import Image, features

import damage
import judges
import ours
import rig
import samples


def pixels(data):
    """Of every frame, by Pillow."""
    with Image.open(io.BytesIO(data)) as image:
        result = []
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            result.append(image.convert("RGBA").tobytes())
        return result


def background(sample, mutant):
    mended = mutant[:11] + sample[11:12] + mutant[12:]
    return judges.opencv(mended, "gif") is None and pixels(mended) == pixels(mutant)


def major_brand(sample, mutant):
    return mutant[4:8] == b"ftyp" and b"avif" in mutant[16:40] and judges.pillow(sample[:12] + mutant[12:], "avif") is None


def without_color(data):
    return data.replace(b"colr", b"free")


def first_500_bytes(sample, mutant):
    valid = without_color(sample)
    return pixels(mutant) == pixels(sample) == pixels(valid) and judges.opencv(valid, "avif") is not None


def bare(mutant):
    """With an empty comment in place of each marker that has no segment, before the first scan."""
    start = max(0, mutant.find(b"\xff\xda"))
    return re.sub(rb"\xff[\x01\xd0-\xd7]", b"\xff\xfe\0\x02", mutant[:start]) + mutant[start:]


def bare_marker(sample, mutant):
    return bare(mutant) != mutant and judges.pillow(bare(mutant), "jpeg") is None and stray_bytes(sample, mutant)


def larger_screen(sample, mutant):
    """Whether OpenCV accepts it with a screen that is as wide, or as high, as can be."""
    sizes = [b"\0\x10\0\x10", b"\xff\xff" + mutant[8:10], mutant[6:8] + b"\xff\xff"]
    return any(judges.opencv(mutant[:6] + size + mutant[10:], "gif") is None for size in sizes)


def stray_bytes(sample, mutant):
    picture = cv2.imdecode(numpy.frombuffer(mutant, numpy.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    with Image.open(io.BytesIO(bare(mutant))) as image:
        if picture is None or picture.shape[:2] != (image.height, image.width):
            return False
        # Each makes RGB of CMYK by a formula of its own.
        return image.mode == "CMYK" or numpy.abs(picture[:, :, ::-1].astype(int) - numpy.asarray(image.convert("RGB"))).max() <= 2


# (judge, format, pattern of its reason, proof by sample and mutant, why)
RULES = [
    (
        "OpenCV",
        "jpeg",
        r"Corrupt JPEG data: \d+ extraneous bytes before marker 0x(c[0124]|d[abd]|e.|fe)$",
        stray_bytes,
        "libjpeg prints a warning of bytes between the segments before the first scan, which OpenCV and Pillow ignore; prefetch keeps it with"
        " the image, as it can be no more than padding. Proof: both judges return a picture, and the same one.",
    ),
    (
        "Pillow",
        "jpeg",
        "UnidentifiedImageError",
        bare_marker,
        "Pillow does not know all markers without a segment (T.81, table B.1: TEM, RSTm), which libjpeg skips before the first scan."
        " Proof: with empty comments in their place it accepts the mutant, with the picture that OpenCV returns.",
    ),
    (
        "OpenCV",
        "gif",
        r".*grfmt_gif.cpp:98: .*left \+ width <= m",
        larger_screen,
        "OpenCV wants frames inside the screen; other decoders draw the part that is, or enlarge the screen."
        " Proof: it accepts the mutant on a larger screen.",
    ),
    (
        "OpenCV",
        "gif",
        "imdecode: .*grfmt_gif.cpp:74",
        background,
        "OpenCV wants a background color that is in the table; decoders ignore it, as browsers do."
        " Proof: it accepts the mutant with the sample's background color, which has the same pixels by Pillow.",
    ),
    (
        "Pillow",
        "avif",
        "UnidentifiedImageError",
        major_brand,
        "Pillow knows an AVIF by its major brand alone; a reader has to look at the compatible brands (ISO/IEC 14496-12, 4.3)."
        " Proof: it accepts the mutant with the sample's major brand.",
    ),
    (
        "OpenCV",
        "avif",
        "imdecode: $",
        first_500_bytes,
        "OpenCV knows an AVIF by 500 bytes, with which libavif cannot read the AV1 data that tells the color where no colr property does."
        " Proof: Pillow finds the sample's own pixels, also in the sample without that property, which OpenCV rejects, too.",
    ),
]


def excuse(form, judge, reason, sample, mutant):
    """The number of the rule by which a judge is wrong, None if there is none. Runs in a judge's process."""
    for number, (name, rule_form, pattern, proof, _) in enumerate(RULES):
        if (name, rule_form) == (judge, form) and re.match(pattern, reason):
            try:
                return number if proof(sample, mutant) else None
            except Exception:
                # A decoder rejects what the proof decodes.
                return None
    return None


def cases(options):
    """(sample's name, format, damage, bytes, the sample's bytes)."""
    for number, (kind, (form, _, turns)) in enumerate(samples.KINDS.items()):
        for turn in (1, 6) if turns and kind in ("jpeg baseline", "avif") else (1,):
            random = numpy.random.default_rng([options.seed, number, turn])
            sample = samples.make(kind, random, orientation=turn)
            name = kind if turn == 1 else f"{kind}, orientation {turn}"
            yield name, form, "none", sample, sample
            for how, mutant in damage.mutants(sample, form, options.per_sample, random):
                yield name, form, how, mutant, sample


def versions():
    names = ("libjpeg_turbo", "zlib", "webp", "avif")
    parts = [f"{name} {features.version(name)}" for name in names]
    return f"judges: Pillow {PIL.__version__} ({', '.join(parts)}), OpenCV {cv2.__version__}"


def judged(options, bench):
    """The cases with the tool's verdict and those of the judges: None or a reason each."""
    folder = pathlib.Path(bench.path("files"))
    folder.mkdir()
    all_cases = list(cases(options))
    names = []
    for number, (_, form, _, data, _) in enumerate(all_cases):
        names.append(f"{number}.{form}")
        (folder / names[-1]).write_bytes(data)
    refused = ours.verdicts(bench, folder, len(names))
    said = judges.verdicts([(str(folder / name), case[1]) for name, case in zip(names, all_cases)])
    for name, case, (pillow, opencv) in zip(names, all_cases, said, strict=True):
        yield case, refused.get(name), pillow, opencv


def main():
    parser = rig.table_parser("pictures mutants", __doc__)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the damage (default: 1)")
    parser.add_argument("--per-sample", type=int, default=150, metavar="N", help="mutants of each kind of damage, of each sample (default: 150)")
    parser.add_argument("--keep", metavar="DIR", help="keep mutants that the tool accepts and a judge rejects, without a rule, in this folder")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"seed {options.seed}", flush=True)

    counts = collections.defaultdict(collections.Counter)
    rules, unchanged = collections.Counter(), collections.Counter()
    wrong, kinds, bad_samples = [], collections.Counter(), []
    with rig.Rig(options) as bench, judges.pool() as workers:
        for (name, form, how, data, sample), our, pillow, opencv in judged(options, bench):
            reasons = {"Pillow": pillow, "OpenCV": opencv}
            rejecting = [judge for judge, reason in reasons.items() if reason]
            if how == "none":
                kinds[form] += 1
                if our or len(rejecting) == 2:
                    bad_samples.append(f"{name}: prefetch {our}, Pillow {pillow}, OpenCV {opencv}")
                continue
            count = counts[form]
            count["mutants"] += 1
            if our:
                count[("alone", "ours and one", "rejected")[len(rejecting)]] += 1
            elif not rejecting:
                count["accepted"] += 1
            else:
                found = [workers.submit(excuse, form, judge, reasons[judge], sample, data).result() for judge in rejecting]
                is_excused = None not in found
                count["by a rule" if is_excused else "wrong"] += 1
                for number in found if is_excused else ():
                    rules[number] += 1
                    unchanged[number] += not pillow and pixels(data) == pixels(sample)
                wrong.append({"sample": name, "format": form, "damage": how, "rules": found, **reasons})
                if options.keep and not is_excused:
                    pathlib.Path(options.keep).mkdir(parents=True, exist_ok=True)
                    (pathlib.Path(options.keep) / f"{name} {how}.{form}".replace(" ", "-")).write_bytes(data)
    lines = [f"Seed {options.seed}, {options.per_sample} of each damage; {versions()}.", ""]
    columns = ["accepted by all", "rejected by all", "rejected by prefetch and one judge", "by prefetch alone"]
    columns += ["accepted, a judge is wrong by a rule", "accepted, a judge rejects"]
    lines += [f"| format | samples | mutants | {' | '.join(columns)} |", "|---" * (3 + len(columns)) + "|"]
    for form, count in counts.items():
        cells = (kinds[form], *(count[key] for key in ("mutants", "accepted", "rejected", "ours and one", "alone", "by a rule", "wrong")))
        lines.append(f"| {form} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    lines += ["", "Rules, each with a proof that the script repeats for every mutant:", ""]
    for number, (judge, form, _, _, why) in enumerate(RULES):
        lines.append(f"{number + 1}. {judge}, {form}, {rules[number]} mutants ({unchanged[number]} with the sample's own pixels): {why}")
    rig.publish(options, "pictures mutants", lines)
    for line in bad_samples:
        print(f"undamaged sample {line}")
    unexcused = [entry for entry in wrong if None in entry["rules"]]
    for entry in unexcused[:40]:
        print(f"accepted: {entry['sample']}, {entry['damage']}: Pillow {entry['Pillow']}; OpenCV {entry['OpenCV']}"[:400])
    sys.exit(1 if unexcused or bad_samples else 0)


if __name__ == "__main__":
    main()
