"""Damaged copies of a file: each function takes the bytes and a generator of random numbers."""

import png


def prefix(data, random):
    return data[: random.integers(1, len(data))]


def flip(data, random):
    at = random.integers(0, len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.integers(0, 8)]) + data[at + 1 :]


def run(data, random):
    """The bounds of a run of at most an eighth of the file."""
    count = int(random.integers(1, max(2, len(data) // 8)))
    at = int(random.integers(0, len(data) - count + 1))
    return at, at + count


def zeroed(data, random):
    start, end = run(data, random)
    return data[:start] + bytes(end - start) + data[end:]


def removed(data, random):
    start, end = run(data, random)
    return data[:start] + data[end:]


def duplicated(data, random):
    start, end = run(data, random)
    return data[:end] + data[start:]


def swapped(data, random):
    first, second = sorted(random.choice(len(data), 2, replace=False))
    result = bytearray(data)
    result[first], result[second] = result[second], result[first]
    return bytes(result)


KINDS = [prefix, flip, zeroed, removed, duplicated, swapped]


def mutants(data, form, count, random):
    """`count` different ones of each kind, as (name, bytes); of PNG as many again with their CRCs made right."""
    seen = {data}
    for kind in KINDS:
        for number in range(count):
            damaged = kind(data, random)
            versions = [(kind.__name__, damaged)]
            if form == "png" and kind is not prefix:
                versions.append((kind.__name__ + " repaired", png.repaired(damaged)))
            for name, version in versions:
                if version not in seen:
                    seen.add(version)
                    yield f"{name} {number}", version
