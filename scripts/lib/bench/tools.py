"""The tools that are compared: how each is called, and what its exit codes mean. 64 transfers in flight for each."""

import os

PROCESSES = 2
IN_FLIGHT = 64
EACH = IN_FLIGHT // PROCESSES


class Tool:
    """One tool with its settings. `command` makes a fresh folder usable and returns the words to run."""

    def __init__(self, name, title, checks, settings, table, command, codes):
        self.name = name
        self.title = title
        self.checks = checks
        self.settings = settings
        self.table = table
        self.command = command
        self.codes = codes


def shards(folder):
    for shard in range(256):
        os.makedirs(f"{folder}/{shard:02x}")


def all_tools(binaries, bare, urls, list_path, work):
    coord = f"{binaries}/prefetch-coord"

    def ours(*options):
        def command(folder):
            words = [coord, "run", list_path, "--cache", f"{folder}/cache", "-n", str(PROCESSES), *options]
            return words + ["--allow-net", "127.0.0.0/8", "--quiet", "--json"]

        return command

    def floor(mode):
        return lambda folder: [bare, "-p", str(PROCESSES), "-c", str(EACH), "-m", mode, "-o", f"{folder}/files", list_path]

    def curl(folder):
        shards(folder)
        config = f"{work}/curl-{os.path.basename(folder)}.txt"
        with open(config, "w", encoding="ascii") as file:
            for number, url in enumerate(urls):
                file.write(f'url = "{url}"\noutput = "{folder}/{number % 256:02x}/{number}"\n')
        return ["curl", "-q", "--silent", "--fail", "--parallel", "--parallel-immediate", "--parallel-max", str(IN_FLIGHT), "-K", config]

    def wget2(folder):
        words = ["wget2", "--no-config", "--quiet", "--progress=none", "-i", list_path, f"--max-threads={IN_FLIGHT}"]
        words += ["--force-directories", "--no-host-directories", "-P", folder, "--tries=1", "--no-robots", "--no-hsts"]
        return words

    like = ("--max-concurrent-downloads", str(EACH), "--validate", "structure", "--durability", "none")
    like += ("--max-per-host", "0")
    names = {
        "like": f"{PROCESSES} workers, " + " ".join(like),
        "ours": f"{PROCESSES} workers, defaults: --max-concurrent-downloads auto --validate decode --durability batch",
        "bare": f"{PROCESSES} processes x {EACH}, no check, no sync",
        "decode": f"{PROCESSES} processes x {EACH}, full decode, SHA-256, syncfs every 256 files",
    }
    # The exit codes of a list with bad URLs: 3 finished with skips; 22 of --fail; 8 an error response of the server.
    return [
        Tool("prefetch", "**prefetch**, 2 workers", "structure, SHA-256", names["like"], "like for like", ours(*like), {0, 3}),
        Tool("bare", "a bare libcurl program, 2 processes", "nothing", names["bare"], "like for like", floor("none"), {0}),
        Tool("curl", "curl --parallel", "nothing", f"1 process, --parallel --parallel-max {IN_FLIGHT}, no check, no sync", "like for like", curl, {0, 22}),
        Tool("wget2", "wget2", "nothing", f"1 process, --max-threads={IN_FLIGHT}, no check, no sync", "like for like", wget2, {0, 8}),
        Tool("prefetch-defaults", "**prefetch**, its defaults", "every image decoded, SHA-256, synced", names["ours"], "with verification", ours(), {0, 3}),
        Tool("bare-decode", "the bare program with the same checks", "every image decoded, SHA-256, synced", names["decode"], "with verification", floor("decode"), {0}),
    ]


BASELINES = {"like for like": "bare", "with verification": "bare-decode"}
