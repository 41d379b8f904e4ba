# Sourced: folders with a Debian of their own, made by debootstrap from the mirror of this machine, for root only. Nothing is mounted
# outside the commands that run inside, so that removing such a folder cannot reach through a mount.

# The first mirror of Debian that apt uses here.
debian_mirror() {
    local uri
    uri=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed 's/#.*//' \
        | grep -oE '\b(https?|file):/[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ')
    printf '%s\n' "${uri:-http://deb.debian.org/debian}"
}

make_chroot() { # suite, folder, another mirror, its components
    local mirror=${3:-} parts=${4:-main} proxy
    [ -n "$mirror" ] || mirror=$(debian_mirror)
    debootstrap --variant=minbase --components="$parts" "$1" "$2" "$mirror" >"$2.log" 2>&1 || { tail -n 20 "$2.log" >&2; return 1; }
    rm -f "$2.log"
    printf 'deb %s %s %s\n' "$mirror" "$1" "${parts//,/ }" >"$2/etc/apt/sources.list"
    proxy=$(apt-config dump Acquire::http::Proxy 2>/dev/null) || proxy=
    printf '%s\nAPT::Install-Recommends "false";\n' "$proxy" >"$2/etc/apt/apt.conf.d/90prefetch"
    printf 'force-unsafe-io\n' >"$2/etc/dpkg/dpkg.cfg.d/prefetch"
    # Services of packages are not started in there.
    printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
    chmod 755 "$2/usr/sbin/policy-rc.d"
    cp /etc/resolv.conf "$2/etc/resolv.conf" 2>/dev/null || true
    cp /etc/hosts "$2/etc/hosts"
}

# Runs a command inside, with folders of this machine bound to the same paths; what it leaves running ends with it.
in_chroot() { # folder, paths with : between or -, command…
    local root=$1 binds=$2
    shift 2
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child --propagation private bash -c '
        set -e
        root=$1 binds=$2
        shift 2
        mount -t proc proc "$root/proc"
        mount -t tmpfs tmpfs "$root/dev/shm"
        [ "$binds" != - ] || binds=
        IFS=:
        for pair in $binds; do
            from=${pair%%=*} to=${pair##*=}
            mkdir -p "$root$to"
            mount --bind "$from" "$root$to"
        done
        unset IFS
        exec chroot "$root" /usr/bin/env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 TMPDIR=/tmp DEBIAN_FRONTEND=noninteractive "$@"
    ' in_chroot "$root" "$binds" "$@"
}
