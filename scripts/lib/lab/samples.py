"""Pictures, and files of them of every kind that Pillow writes."""

import io

import numpy
from PIL import Image

def photograph(random, width, height):
    """Light, texture of many sizes, and edges: the spectrum of a photograph falls with the frequency."""
    canvas = numpy.zeros((height, width, 3), numpy.float32)
    for octave in range(2, 9):
        size = 2**octave
        shape = (min(size, height), min(size, width), 3)
        part = Image.fromarray((random.random(shape, numpy.float32) * 255).astype(numpy.uint8))
        canvas += numpy.asarray(part.resize((width, height), Image.BICUBIC), numpy.float32) * 0.5 ** (octave - 1)
    y, x = numpy.mgrid[0:height, 0:width]
    for _ in range(12):
        middle_x, middle_y, radius = random.integers(width), random.integers(height), random.integers(10, max(11, min(width, height) // 4))
        canvas[(x - middle_x) ** 2 + (y - middle_y) ** 2 < radius**2] *= random.uniform(0.5, 1.4, 3)
    return Image.fromarray(numpy.clip(canvas, 0, 255).astype(numpy.uint8))


def alpha(picture):
    result = picture.copy()
    result.putalpha(picture.convert("L"))
    return result


def still(form, change=lambda picture: picture, **options):
    def save(picture):
        file = io.BytesIO()
        change(picture).save(file, form, **options)
        return file.getvalue()

    return save


def animated(form, **options):
    def save(picture):
        size = (max(8, picture.width // 2), max(8, picture.height // 2))
        frames = [picture.transform(picture.size, Image.AFFINE, (1, 0, 4 * step, 0, 1, 3 * step)).resize(size) for step in range(4)]
        file = io.BytesIO()
        frames[0].save(file, form, save_all=True, append_images=frames[1:], duration=50, **options)
        return file.getvalue()

    return save


# By name, which begins with the format.
KINDS = {
    "jpeg, baseline": still("JPEG", quality=87),
    "jpeg, progressive": still("JPEG", quality=87, progressive=True),
    "png": still("PNG"),
    "gif, still": still("GIF", lambda picture: picture.quantize(256)),
    "gif, flat": still("GIF", lambda picture: picture.quantize(16)),
    "gif, interlaced": still("GIF", lambda picture: picture.quantize(61), interlace=1),
    "gif, transparent": still("GIF", lambda picture: picture.quantize(61), transparency=7),
    "gif, animated": animated("GIF"),
    "webp, lossy": still("WEBP", quality=80),
    "webp, lossless": still("WEBP", lossless=True),
    "webp, alpha": still("WEBP", alpha, quality=80),
    "webp, lossless, alpha": still("WEBP", alpha, lossless=True, exact=True),
    "webp, animated": animated("WEBP", quality=80),
    "avif": still("AVIF", quality=60, speed=9, max_threads=1),
    "avif, alpha": still("AVIF", alpha, quality=70, speed=9, max_threads=1),
    "avif, grey": still("AVIF", lambda picture: picture.convert("L"), quality=70, speed=9, max_threads=1),
    "avif, animated": animated("AVIF", quality=60, speed=9, max_threads=1),
}


def form(kind):
    return kind.split(",")[0]


def write(folder, count, random, kinds):
    """`count` files of 300 to 900 pixels of each of these kinds, by kind."""
    found = {kind: [] for kind in kinds}
    for number in range(count):
        picture = photograph(random, int(random.integers(300, 900)), int(random.integers(300, 900)))
        for kind, paths in found.items():
            paths.append(f"{folder}/{kind.replace(', ', '-')}-{number}")
            with open(paths[-1], "wb") as file:
                file.write(KINDS[kind](picture))
    return found
