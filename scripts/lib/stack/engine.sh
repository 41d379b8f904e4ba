# Docker where there is none, and base images where no registry can be reached: read by scripts/stack-test and scripts/unit-test.
# Everything it starts is noted and ended again; everything it keeps is below $state. At the end it calls the script's own `finish`, with the exit
# code in $code, and removes $image where nothing is kept.
work=$(mktemp -d)
state=${STACK_STATE:-${XDG_CACHE_HOME:-/var/cache}/prefetch-stack}
leave() {
    code=$?
    trap - EXIT INT TERM
    set +e
    finish
    if [ -z "$keep" ] && [ -n "${docker:-}" ]; then "$docker" image rm -f "$image" >/dev/null 2>&1; fi
    stop_engine
    exit $code
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A client that can build with BuildKit, and Compose as a plugin or a program.
find_docker() {
    local client version
    while read -r client; do
        version=$("$client" version --format '{{.Client.Version}}' 2>/dev/null | head -n 1)
        version=${version:-$("$client" --version 2>/dev/null | sed -nE 's/.*version ([0-9.]+).*/\1/p')}
        # Until 23 the client could do it by itself; since then it needs the plugin.
        if [ "${version%%.*}" -lt 23 ] 2>/dev/null || "$client" buildx version >/dev/null 2>&1; then
            docker=$client
            break
        fi
    done < <(type -ap docker)
    [ -n "${docker:-}" ] || return 1
    if "$docker" compose version >/dev/null 2>&1; then
        compose=("$docker" compose)
    elif command -v docker-compose >/dev/null; then
        compose=(docker-compose)
    else
        return 1
    fi
}

install_engine() {
    find_docker && command -v dockerd >/dev/null && command -v iptables >/dev/null && return
    [ "$(id -u)" -eq 0 ] || fail "there is no Docker with Compose that can be used" "install it, or run this as root: it is installed from Debian's packages" 69
    command -v apt-get >/dev/null || fail "there is no Docker with Compose" "install both: https://docs.docker.com/engine/install/" 69
    say "installing docker.io and docker-compose"
    # Not started: this script runs a server of its own.
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends \
        docker.io containerd runc iptables docker-compose; } >"$work/apt.log" 2>&1 </dev/null \
        || { tail -n 20 "$work/apt.log" >&2; fail "apt-get could not install Docker" "see the lines above" 69; }
    hash -r
    find_docker || fail "Docker was installed, but no client of it can build" "install docker-buildx and docker-compose" 69
}

# Uses the engine that answers; starts one with its own data where none does.
start_engine() {
    if [ -z "${STACK_ENGINE:-}" ] && find_docker && "$docker" info >/dev/null 2>&1; then
        say "using the engine that runs: $("$docker" version --format '{{.Server.Version}}')"
        path_for_compose
        return
    fi
    install_engine
    [ "$(id -u)" -eq 0 ] || fail "no Docker engine answers" "start it, or run this as root" 69
    # Where rules mention Docker already, they are somebody's.
    if ! { iptables-save; ip6tables-save; } | grep -qi docker; then
        policy=$(iptables -S FORWARD | awk '$1 == "-P" { print $3 }')
        policy6=$(ip6tables -S FORWARD 2>/dev/null | awk '$1 == "-P" { print $3 }') || policy6=''
        forwarding=$(cat /proc/sys/net/ipv4/ip_forward)
    fi
    export DOCKER_HOST=unix://$work/docker.sock
    dockerd --data-root "$state/docker" --exec-root "$work/exec" --pidfile "$work/docker.pid" -H "$DOCKER_HOST" \
        >"$work/dockerd.log" 2>&1 &
    engine_pid=$!
    local tries
    for tries in $(seq 120); do
        "$docker" info >/dev/null 2>&1 && break
        kill -0 "$engine_pid" 2>/dev/null || break
        sleep 0.5
    done
    "$docker" info >/dev/null 2>&1 || { tail -n 5 "$work/dockerd.log" >&2; fail "the Docker engine did not start" "see the lines above" 69; }
    say "started an engine of its own: $("$docker" version --format '{{.Server.Version}}'), its data in $state/docker"
    path_for_compose
}

# docker-compose calls `docker`: it has to be the one that can build.
path_for_compose() {
    mkdir -p "$work/bin"
    ln -sf "$docker" "$work/bin/docker"
    export PATH="$work/bin:$PATH" DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1
}

stop_engine() {
    [ -n "${git_pid:-}" ] && kill "$git_pid" 2>/dev/null && wait "$git_pid" 2>/dev/null
    [ -n "${engine_pid:-}" ] && kill "$engine_pid" 2>/dev/null && wait "$engine_pid" 2>/dev/null
    [ -z "${forwarding:-}" ] || forget_rules
    if [ -n "${engine_pid:-}" ]; then
        # What an engine that was killed leaves mounted.
        awk -v work="$work" -v state="$state" 'index($2, work) == 1 || index($2, state) == 1 { print $2 }' /proc/mounts | xargs -r umount -l
        if [ -n "$keep" ]; then say "kept: $state; remove it with: rm -rf $state"; else rm -rf "$state"; fi
    fi
    rm -rf "$work"
}

# Removes the packet filter rules and the bridge that the engine leaves behind, and undoes its settings: with its rules all connections of
# the machine would be tracked from then on.
forget_rules() {
    local tables rules table before
    # First: without the engine's policy the machine would forward everything.
    echo "$forwarding" >/proc/sys/net/ipv4/ip_forward
    for tables in iptables ip6tables; do
        before=$policy
        [ $tables = iptables ] || before=$policy6
        rules=$("$tables-save" | grep -vi docker | sed "s/^:FORWARD [A-Z]*/:FORWARD ${before:-ACCEPT}/")
        "$tables-restore" <<<"$rules"
        # Without a rule the chains of nat would track connections too.
        for table in $(sed -n 's/^\*//p' <<<"$rules"); do
            "$tables" -t "$table" -S | grep -q '^-A' || "$tables" -t "$table" -X
        done
    done
    ip link delete docker0 2>/dev/null
}

# Whether an image is here, or the registry has it.
has_image() { # name
    "$docker" image inspect "$1" >/dev/null 2>&1 || timeout 600 "$docker" pull -q "$1" >"$work/pull.log" 2>&1
}

# A base image: what is here, what the registry has, or else one made of Debian's packages under the same name.
base_image() { # name, function that makes it
    has_image "$1" && return
    say "$1 cannot be pulled ($(tail -n 1 "$work/pull.log" | cut -c 1-90)); making one of Debian's packages"
    "$2" "$1" >"$work/make.log" 2>&1 || { tail -n 20 "$work/make.log" >&2; fail "$1 could not be made" "see the lines above" 69; }
}

# What debian:…-slim has: no documentation, no manual pages.
debian_root() { # release, folder
    command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; } || return
    rm -rf "$2" && mkdir -p "$2" || return
    debootstrap --variant=minbase "$1" "$2" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" || return
    rm -rf "$2"/var/cache/apt/*.bin "$2"/var/cache/apt/archives/*.deb "$2"/var/lib/apt/lists/* "$2"/usr/share/{doc,man,info,locale}/* "$2"/var/log/*
    printf 'path-exclude /usr/share/%s/*\n' doc man info locale >"$2/etc/dpkg/dpkg.cfg.d/slim"
    # As in the official image: a package that is installed starts no service.
    printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d" && chmod +x "$2/usr/sbin/policy-rc.d"
}

make_debian() { # name, as debian:bookworm-slim
    local release=${1#*:}
    debian_root "${release%-slim}" "$work/root" || return
    tar -C "$work/root" -c . | "$docker" import --change 'CMD ["bash"]' - "$1" || return
    rm -rf "$work/root"
}

# The toolchain of this machine over Debian, as the official image has the one of swift.org.
make_swift() { # name, as swift:6.3-bookworm
    local release=${1##*-} program toolchain
    program=$(readlink -f "$(command -v swift)") || return
    toolchain=${program%/usr/bin/*}
    [ "$toolchain" != "$program" ] && [ -d "$toolchain/usr/lib/swift_static" ] || { echo "the toolchain of $program has no swift_static"; return 1; }
    base_image "debian:$release-slim" make_debian || return
    local container
    container=$("$docker" create "debian:$release-slim") && mkdir -p "$work/root" || return
    "$docker" export "$container" | tar -C "$work/root" -x || return
    "$docker" rm "$container" || return
    local unused=(--exclude='./usr/bin/lldb*' --exclude='./usr/lib/liblldb*' --exclude='./usr/bin/*sourcekit*' --exclude='./usr/bin/clangd'
        --exclude='./usr/lib/libsourcekit*' --exclude='./usr/bin/docc' --exclude='./usr/share/d*' --exclude='./usr/lib/swift/embedded'
        --exclude='./usr/lib/python3*' --exclude='./usr/local' --exclude='./usr/bin/swift-format')
    # Where the toolchain was put straight into /, only what is Swift's would have to be told apart.
    [ -n "$toolchain" ] || { echo "the toolchain is a part of the system here"; return 1; }
    tar -C "$toolchain" "${unused[@]}" -c ./usr | tar -C "$work/root" -x || return
    tar -C "$work/root" -c . | "$docker" import --change 'CMD ["bash"]' - "$1" || return
    rm -rf "$work/root"
}

# One package over Debian: what is made before it is installed, and the lines that follow.
make_of() { # name, package, commands, line…
    base_image debian:bookworm-slim make_debian || return
    mkdir -p "$work/$2"
    printf '%s\n' "FROM debian:bookworm-slim" \
        "RUN $3 && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $2 && rm -rf /var/lib/apt/lists/*" \
        "${@:4}" >"$work/$2/Dockerfile"
    "$docker" build -q -t "$1" "$work/$2"
}
make_redis() { # name, as redis:7-bookworm
    make_of "$1" redis-server 'groupadd -r -g 999 redis && useradd -r -g redis -u 999 redis && install -d -o redis -g redis /data' \
        'WORKDIR /data' 'CMD ["redis-server"]'
}
make_prometheus() { # name, as prom/prometheus:v3.5.0
    make_of "$1" prometheus 'install -d -o nobody -g nogroup /prometheus' 'USER nobody' 'WORKDIR /prometheus' 'ENTRYPOINT ["/usr/bin/prometheus"]'
}

# Where git is told to take packages from this machine instead of github.com, containers get them from here as well.
git_mirror() {
    local base
    base=$(git config --get-regexp '^url\..*\.insteadof$' 2>/dev/null \
        | sed -nE 's|^url\.(/.*)\.insteadof https://github\.com/$|\1|p' | head -n 1)
    [ -n "$base" ] || return 0
    local gateway
    gateway=$("$docker" network inspect bridge --format '{{(index .IPAM.Config 0).Gateway}}')
    gateway=${gateway:-172.17.0.1}
    local port=$((20000 + RANDOM % 10000))
    "$(git --exec-path)/git-daemon" --export-all --reuseaddr --listen="$gateway" --port="$port" --base-path="$base" >"$work/git.log" 2>&1 &
    git_pid=$!
    export GIT_MIRROR="git://$gateway:$port/"
    say "packages come from $GIT_MIRROR, as git is told on this machine"
}

# The stack's subnet, or the next one that is free: a stack that runs, or one that was killed with its engine, has the first.
free_subnet() {
    local third
    [ -z "${PREFETCH_SUBNET:-}" ] || return 0
    for third in $(seq 99 -1 80); do
        [ -n "$(ip -4 route show root "172.31.$third.0/24")" ] && continue
        export PREFETCH_SUBNET=172.31.$third.0/24
        return
    done
    fail "no subnet of 172.31.80.0/24 to 172.31.99.0/24 is free" "set PREFETCH_SUBNET" 69
}
