# Several machines on one: network namespaces as hosts, each with the name it is made with. Read by scripts that need root for them. What is made
# and started here ends with the script; the ends of all logs are shown where it fails.
as_root "network namespaces need root"
command -v ip >/dev/null || fail "there is no ip" "apt-get install iproute2" 69
work=$(mktemp -d)
# What is made here is forgotten with it.
export XDG_STATE_HOME=$work/state
tag=pf$$ hosts=() pids=()
finish() {
    local code=$? name
    trap - EXIT INT TERM
    set +e
    [ ${#pids[@]} -eq 0 ] || { kill "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
    [ $code -eq 0 ] || tail -n 5 "$work"/*.log >&2
    for name in "${hosts[@]}"; do ip netns del "$tag-$name" 2>/dev/null; done
    rm -rf "$work"
    exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

hosts() { # NAME…
    local name
    for name; do
        ip netns add "$tag-$name"
        hosts+=("$name")
        ip -n "$tag-$name" link set lo up
    done
}
# Each of these becomes the next, so that the number of a process is the program's own.
within='hostname "$0" && exec "$@"'
on() { # HOST program…
    ip netns exec "$tag-$1" unshare --uts bash -c "$within" "$@"
}
start() { # HOST LOG program…
    local host=$1 log=$2
    shift 2
    ip netns exec "$tag-$host" unshare --uts bash -c "$within" "$host" "$@" >>"$work/$log.log" 2>&1 &
    pids+=($!)
    started=$!
}
