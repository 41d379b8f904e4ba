# Read by the scripts that measure prefetch or break what is around it: $here, $typed, and what they all do at their start.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
. "$here/scripts/lib/toolchain.sh"
printf -v typed ' %q' "$@"
[ $# -gt 0 ] || typed=
typed=scripts/${0##*/}${typed//\\,/,}

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit "${3:-1}"; }
say() { printf '%s %s\n' "$(date +%T)" "$1" >&2; }
# Looks until it is so.
await() { # what, seconds, command…
    local what=$1 end=$((SECONDS + $2))
    shift 2
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "not within its time: $what" "see the logs above"
        sleep 0.2
    done
}
as_root() { [ "$(id -u)" -eq 0 ] || fail "$1" "sudo ${typed%% *}" 77; }

# What the head of the script says.
help() { sed -nE '2,/^set /{/^#/s/^# ?//p}' "$0"; }
# Sets $NAME to what stands behind --NAME, and to 1 for those that are given as NAME=.
options() { # NAME… -- words…
    local name known=' '
    while [ "$1" != -- ]; do known+="$1 "; shift; done
    shift
    while [ $# -gt 0 ]; do
        name=${1#--}
        case "$1 $known" in
            -h\ * | --help\ *) help; exit 0 ;;
            --*" $name= "*) printf -v "$name" 1 ;;
            --*" $name "*) printf -v "$name" %s "${2:?$1 wants a value}"; shift ;;
            *) fail "there is no option '$1'" "see ${typed%% *} --help" 64 ;;
        esac
        shift
    done
}

# Sets $bin to the folder of the programs: that in $BIN, or one with a release build. KIND: what scripts/install-deps installs for the script.
programs() { # KIND
    bin=${BIN:-}
    # Who has built programs may have no compiler.
    if [ -z "$bin" ] || [ "$1" != test ]; then "$here/scripts/install-deps" "--$1" || exit; fi
    [ -n "$bin" ] || bin=$("$here/scripts/lib/release" prefetch-coord prefetch-worker prefetch-origin prefetch-codec) || exit
    bin=$(cd "$bin" && pwd) || exit
}

# Becomes a Python program of scripts/lib, with the programs it is about.
lab() { # PROGRAM KIND words…
    local program=$here/scripts/lib/$1 kind=$2
    shift 2
    export PYTHONPATH=$here/scripts/lib/lab
    if [ "$kind" = pictures ]; then
        # The programs import them, for --help too.
        "$here/scripts/install-deps" --pictures
        PYTHONPATH+=:$("$here/scripts/lib/python-tools" pictures)
    fi
    case " $* " in *' --help '* | *' -h '*) exec python3 -B "$program" --help ;; esac
    programs "$kind"
    # Transfers, and the files a server keeps open.
    ulimit -n "$(ulimit -Hn)"
    exec python3 -B "$program" "$@" --binaries "$bin" --typed "$typed"
}
