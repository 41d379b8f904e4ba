"""Pictures of every kind that the tool decodes: each is a function of a picture, an orientation (EXIF's 1 to 8) and a generator of random
numbers, to the bytes of a file."""

import io

import cv2
import numpy
from PIL import Image, ImageOps

import png

ORIENTATION = 0x0112
# How the stored picture is turned, so that the orientation makes it upright: the inverse of what a reader does.
STORED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def scene(width, height, random):
    """A picture with smooth parts, edges and noise, in which up is not down and left is not right."""
    y, x = numpy.mgrid[0:height, 0:width]
    base = random.integers(0, 120, 3)
    image = numpy.stack([base[0] + x * 130 // width, base[1] + y * 130 // height, base[2] + (x + y) * 130 // (width + height)], 2)
    image[: height // 4, : width // 4] = random.integers(128, 256, 3)
    image[height // 2 :, width // 2 :] += random.integers(-12, 13, image[height // 2 :, width // 2 :].shape)
    return Image.fromarray(numpy.clip(image, 0, 255).astype(numpy.uint8))


def alpha(image):
    """With a ramp of transparency."""
    width, height = image.size
    y, x = numpy.mgrid[0:height, 0:width]
    ramp = numpy.minimum(255, (x + 2 * y) * 255 // (width + height)).astype(numpy.uint8)
    return Image.merge("RGBA", [*image.split(), Image.fromarray(ramp)])


def frames(image, random):
    """Three of an animation."""
    return [image, ImageOps.mirror(image), ImageOps.flip(image)]


def saved(image, form, orientation=1, **options):
    """By Pillow."""
    if orientation != 1:
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        options["exif"] = exif
        image = image.transpose(STORED[orientation])
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def animated(images, form, **options):
    return saved(images[0], form, save_all=True, append_images=images[1:], duration=80, **options)


def cmyk(image):
    """With some black taken out of the colours."""
    ink = 255 - numpy.asarray(image).astype(int)
    black = ink.min(2) // 2
    ink = (ink - black[:, :, None]) * 255 // numpy.maximum(255 - black, 1)[:, :, None]
    return Image.fromarray(numpy.dstack([ink.clip(0, 255), black]).astype(numpy.uint8), "CMYK")


def ycck(image, orientation):
    """Adobe's: the inks as YCbCr, in a file that says so. The planes are written as inks, and the transform in APP14 is set."""
    cyan, magenta, yellow, black = cmyk(image).split()
    y, cb, cr = Image.merge("RGB", [cyan, magenta, yellow]).convert("YCbCr").split()
    planes = [ImageOps.invert(plane) for plane in (y, cb, cr)]
    data = bytearray(saved(Image.merge("CMYK", [*planes, black]), "JPEG", orientation, quality=92))
    data[data.index(b"Adobe") + 11] = 2
    return bytes(data)


def jpeg(**options):
    return lambda image, orientation, random: saved(image, "JPEG", orientation, **options)


def chunks(orientation):
    exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0%c\0\0\0\0\0\0\0" % orientation
    return png.chunk(b"eXIf", exif) if orientation != 1 else b""


def portable(color, depth, **more):
    """A PNG of a colour type and depth."""

    def make(image, orientation, random):
        image = image if orientation == 1 else image.transpose(STORED[orientation])
        full = numpy.asarray(alpha(image)).astype(int)
        grey = full[:, :, :3].mean(2).astype(int)[:, :, None]
        samples = {0: grey, 2: full[:, :, :3], 4: numpy.dstack([grey, full[:, :, 3]]), 6: full, 3: grey}[color]
        options = dict(more)
        if color == 3:
            ramp = numpy.arange(1 << depth) * 255 // ((1 << depth) - 1)
            tint = ramp // 2 + random.integers(0, 128)
            options["palette"] = numpy.stack([ramp, tint, 255 - ramp], 1).astype(numpy.uint8).tobytes()
            if options.pop("has_transparency", False):
                options["transparent"] = bytes(ramp.tolist())
        if depth == 16:
            samples = samples * 257 ^ random.integers(0, 256, samples.shape)
        return png.write(samples >> max(0, 8 - depth), color, depth, extra=chunks(orientation), **options)

    return make


def webp(is_alpha=False, **options):
    return lambda image, orientation, random: saved(alpha(image) if is_alpha else image, "WEBP", orientation, **options)


def avif(is_alpha=False, mode=None, **options):
    def make(image, orientation, random):
        image = alpha(image) if is_alpha else image.convert(mode) if mode else image
        return saved(image, "AVIF", orientation, speed=9, max_threads=1, **options)

    return make


def deep_avif(image, orientation, random):
    """Ten bits, by OpenCV."""
    pixels = numpy.asarray(image)[:, :, ::-1].astype(numpy.uint16) * 4
    return cv2.imencode(".avif", pixels, [cv2.IMWRITE_AVIF_DEPTH, 10, cv2.IMWRITE_AVIF_QUALITY, 80, cv2.IMWRITE_AVIF_SPEED, 9])[1].tobytes()


def clip(form, is_alpha=False, **options):
    def make(image, orientation, random):
        images = frames(image, random)
        return animated([alpha(image) for image in images] if is_alpha else images, form, **options)

    return make


def gif(image, is_transparent=False, **options):
    indexed = image.quantize(61)
    if is_transparent:
        options["transparency"] = indexed.getpixel((image.width // 2, image.height // 2))
    return saved(indexed, "GIF", **options)


# Name: format, function, and whether orientations apply.
KINDS = {
    "jpeg baseline": ("jpeg", jpeg(quality=85), True),
    "jpeg 4:4:4": ("jpeg", jpeg(quality=92, subsampling=0), True),
    "jpeg 4:2:2": ("jpeg", jpeg(quality=75, subsampling=1), True),
    "jpeg progressive": ("jpeg", jpeg(quality=80, progressive=True), True),
    "jpeg restart": ("jpeg", jpeg(quality=80, restart_marker_blocks=2), True),
    "jpeg grey": ("jpeg", lambda image, orientation, random: saved(image.convert("L"), "JPEG", orientation), True),
    "jpeg RGB": ("jpeg", jpeg(quality=85, keep_rgb=True), True),
    "jpeg CMYK": ("jpeg", lambda image, orientation, random: saved(cmyk(image), "JPEG", orientation, quality=90), True),
    "jpeg YCCK": ("jpeg", lambda image, orientation, random: ycck(image, orientation), True),
    "png RGB": ("png", portable(2, 8), True),
    "png RGBA": ("png", portable(6, 8, parts=3), True),
    "png RGBA interlaced": ("png", portable(6, 8, interlaced=True), True),
    "png RGB 16": ("png", portable(2, 16), True),
    "png RGBA 16 interlaced": ("png", portable(6, 16, interlaced=True), True),
    "png grey": ("png", portable(0, 8), True),
    "png grey 1": ("png", portable(0, 1), True),
    "png grey 4 interlaced": ("png", portable(0, 4, interlaced=True), True),
    "png grey 16": ("png", portable(0, 16), True),
    "png grey alpha": ("png", portable(4, 8), True),
    "png grey alpha 16": ("png", portable(4, 16), True),
    "png indexed": ("png", portable(3, 8), True),
    "png indexed 2": ("png", portable(3, 2), True),
    "png indexed 4 transparent": ("png", portable(3, 4, has_transparency=True, interlaced=True), True),
    "apng": ("png", clip("PNG"), False),
    "apng alpha": ("png", clip("PNG", is_alpha=True, blend=1, disposal=1), False),
    "gif": ("gif", lambda image, orientation, random: gif(image, interlace=0), False),
    "gif interlaced": ("gif", lambda image, orientation, random: gif(image, interlace=1), False),
    "gif transparent": ("gif", lambda image, orientation, random: gif(image, True), False),
    "gif animated": ("gif", clip("GIF"), False),
    "webp lossy": ("webp", webp(quality=80), True),
    "webp lossless": ("webp", webp(lossless=True), True),
    "webp alpha": ("webp", webp(True, quality=70), True),
    "webp lossless alpha": ("webp", webp(True, lossless=True, exact=True), True),
    "webp animated": ("webp", clip("WEBP", quality=70), False),
    "webp animated alpha": ("webp", clip("WEBP", is_alpha=True, lossless=True), False),
    "avif": ("avif", avif(quality=70), True),
    "avif 4:4:4": ("avif", avif(quality=90, subsampling="4:4:4"), True),
    "avif alpha": ("avif", avif(True, quality=70), True),
    "avif grey": ("avif", avif(mode="L", quality=70), True),
    "avif 10 bits": ("avif", deep_avif, False),
    "avif animated": ("avif", clip("AVIF", quality=60, speed=9, max_threads=1), False),
}


def make(kind, random, size=(48, 36), orientation=1):
    """The bytes of a picture of a kind; upright it has that size."""
    return KINDS[kind][1](scene(*size, random), orientation, random)
