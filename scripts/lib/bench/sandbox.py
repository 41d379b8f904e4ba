"""What decoding in a process of its own costs: images a second of one worker with `--sandbox off` and `on`, at `decode` and at `structure`."""

import os
import statistics
import sys

import numpy

import rig
import samples

# Greatest loss of the rate in percent.
BOUNDS = {"decode": 5, "structure": 1}
KINDS = {"jpeg, baseline": 6, "jpeg, progressive": 1, "png": 2, "webp, lossy": 3}


def urls(kinds, count, base, random):
    """Each kind as often as its share says."""
    names = [name for name, share in KINDS.items() for _ in range(share)]
    for number in range(count):
        paths = kinds[names[int(random.integers(len(names)))]]
        yield f"{base}/{os.path.basename(paths[number % len(paths)])}?{number}"


def main():
    options = rig.image_options("bench sandbox", __doc__, 40, 2400, "URLs of a run")
    random = numpy.random.default_rng(options.seed)
    with rig.Rig(options) as bench:
        folder = bench.path("samples")
        os.makedirs(folder)
        kinds = samples.write(folder, options.samples, random, KINDS)
        listed = bench.write("urls.txt", urls(kinds, options.count, bench.serve(folder), random))
        walls, seconds = {}, {}
        for repetition in range(options.reps):
            for level in BOUNDS:
                # The order changes: what is measured later has a warmer machine.
                for mode in ("off", "on") if repetition % 2 == 0 else ("on", "off"):
                    cache = bench.path(f"cache-{level}-{mode}-{repetition}")
                    wall, cpu = bench.one_worker(listed, cache, "--validate", level, "--sandbox", mode)
                    walls.setdefault((level, mode), []).append(wall)
                    seconds.setdefault((level, mode), []).append(cpu)
                    rig.say(f"{repetition + 1}/{options.reps} {level} {mode}: {options.count / wall:,.0f}/s, {cpu:.2f} s of processor time")
    mix = ", ".join(f"{share} of {name}" for name, share in KINDS.items())
    lines = rig.heading("sandbox", f"{options.count:,} URLs ({mix}) from loopback, one worker, medians of {options.reps}")
    lines += ["| level | off /s | on /s | loss | off CPU s | on CPU s | more | bound | kept |", "|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    broken = False
    for level, bound in BOUNDS.items():
        rates = [options.count / statistics.median(walls[level, mode]) for mode in ("off", "on")]
        cpus = [statistics.median(seconds[level, mode]) for mode in ("off", "on")]
        loss, more = 100 * (1 - rates[1] / rates[0]), 100 * (cpus[1] / cpus[0] - 1)
        kept = loss <= bound
        broken |= not kept
        lines.append(f"| `{level}` | {rates[0]:,.0f} | {rates[1]:,.0f} | {loss:.1f} % | {cpus[0]:.2f} | {cpus[1]:.2f} | {more:.1f} % | {bound} % | {'yes' if kept else 'NO'} |")
    rig.publish(options, "bench sandbox", lines)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
