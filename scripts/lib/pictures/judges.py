"""Verdicts of other decoders, in processes of their own: a decoder that crashes takes no more with it, and what its C prints is read."""

import concurrent.futures
import ctypes
import io
import os
import re
import signal
import tempfile
import warnings

# Read by OpenCV when it is loaded: what a damaged size may cost.
os.environ["OPENCV_IO_MAX_IMAGE_PIXELS"] = str(1 << 26)

import cv2
import numpy
from PIL import Image, ImageFile

# Above: the file asks for more than a decoder of pictures gives. It is no damage that a judge has seen.
Image.MAX_IMAGE_PIXELS = 1 << 26
# What a library prints of damage, and decodes nevertheless.
DAMAGE = re.compile(r"Corrupt JPEG data|Premature end of JPEG|libpng (error|warning: IDAT: (?!Extra|Too much))")
ANIMATED = {"png", "gif", "webp", "avif"}


def pillow(data, form):
    """None, or why Pillow rejects it."""
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with Image.open(io.BytesIO(data)) as image:
                if image.format.lower() not in (form, "mpo"):
                    return f"is {image.format}"
                for number in range(getattr(image, "n_frames", 1)):
                    image.seek(number)
                    image.load()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    damage = [str(warning.message) for warning in said if re.search("APNG|[Tt]runcated", str(warning.message))]
    return damage[0] if damage else None


def opencv(data, form):
    """None, or why OpenCV rejects it."""
    bytes_ = numpy.frombuffer(data, numpy.uint8)
    printed.seek(0)
    printed.truncate()
    try:
        if cv2.imdecode(bytes_, cv2.IMREAD_UNCHANGED) is None:
            return "imdecode: " + said()
        if form in ANIMATED:
            is_good, animation = cv2.imdecodeanimation(bytes_)
            if not is_good or not animation.frames:
                return "imdecodeanimation: " + said()
    except cv2.error as error:
        return f"{error.func}: {error.err}"
    text = said()
    return text if DAMAGE.search(text) else None


def said():
    printed.seek(0)
    return re.sub(r"\[[^]]*\] global ", "", printed.read().decode(errors="replace")).strip().replace("\n", "; ")[:200]


def start():
    """Of a process: it ends with its parent, and what libraries print goes to a file."""
    global printed
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    printed = tempfile.TemporaryFile()
    os.dup2(printed.fileno(), 2)
    cv2.setNumThreads(1)


def both(path, form):
    with open(path, "rb") as file:
        data = file.read()
    return pillow(data, form), opencv(data, form)


def pool():
    return concurrent.futures.ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=start)


def verdicts(files):
    """Of (path, format): a pair of reasons each."""
    with pool() as workers:
        yield from workers.map(both, *zip(*files), chunksize=64)
