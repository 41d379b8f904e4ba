"""Reads what callgrind wrote: where the instructions of a program are, by parts of it."""

import glob
import re

# Functions by what they are for; the first that fits counts. Those of Swift modules are told by their mangled names.
MALLOC = r"(_int_)?(malloc|calloc|realloc|memalign|free)(_consolidate|_merge_chunk|_create_chunk)?|unlink_chunk.*|(posix_|_mid_)?memalign|tcache_.*|cfree|sysmalloc"
LOCKS = r"_*(pthread_mutex|pthread_rwlock|lll_(lock|unlock)).*"
COUNTING = r"_?swift_(bridgeObject)?(retain|release|unowned|weak|nonatomic|try|isUniquely).*|.*RefCounts.*|swift_bridgeObject.*|.*doDecrement.*|.*HeapObject.*"
TASKS = r"_?swift_(task|job|continuation|async|taskGroup|defaultActor|executor|actor|concurrency)\w*|.*(AsyncTask|AsyncContext|StatusRecord|DefaultActor|TaskGroup|ExecutorRef|ExecutorTracking|StackAllocator).*"
ALLOCATION = r"_?swift_(alloc|dealloc|slow|initStack|arrayInit|arrayDestroy).*"
BEHIND = re.compile(r" \(\d+\)$|@@?[\w.]+$|'\d+$")
MODULE = re.compile(r"\$s(\d+)")


def functions(path):
    """Own instructions by object and function, of all processes of a run."""
    found = {}
    for file in glob.glob(f"{path}.*"):
        names = {"ob": {}, "fn": {}}
        own, inclusive = {"ob": "", "fn": ""}, False
        with open(file, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                word, equals, rest = line.partition("=")
                if equals and word.removeprefix("c") in names:
                    kind = word.removeprefix("c")
                    number, _, name = rest.rstrip("\n").partition(" ")
                    if name:
                        names[kind][number] = name
                    if word in own:
                        own[word] = names[kind][number]
                elif word == "calls":
                    inclusive = True
                elif line[:1].isdigit() or line[:1] in "+-*":
                    if not inclusive:
                        key = (own["ob"], own["fn"])
                        found[key] = found.get(key, 0) + int(line.split()[1])
                    inclusive = False
    return found


def part(library, function, modules):
    """What an instruction of that function is for."""
    name = library.rsplit("/", 1)[-1]
    function = BEHIND.sub("", function)
    if re.fullmatch(MALLOC, function):
        return "malloc and free"
    if re.fullmatch(LOCKS, function):
        return "locks"
    if name.startswith("libcurl"):
        return "libcurl"
    if name.startswith(("libc.", "ld-", "libpthread", "vgpreload")):
        return "the C library"
    if name.startswith("lib"):
        return "other libraries"
    for pattern, what in ((COUNTING, "retain and release"), (TASKS, "Swift's tasks"), (ALLOCATION, "Swift's allocation")):
        if re.fullmatch(pattern, function):
            return what
    mangled = MODULE.match(function)
    if mangled:
        begin = mangled.end()
        module = function[begin : begin + int(mangled.group(1))]
        return f"module {module}" if module in modules else "other Swift libraries"
    if function.startswith(("$s", "_swift", "swift_", "swift::", "_$s")):
        return "Swift's standard library and runtime"
    return "C code of the program"


def parts(path, modules):
    result = {}
    for (library, function), instructions in functions(path).items():
        what = part(library, function, modules)
        result[what] = result.get(what, 0) + instructions
    return result
