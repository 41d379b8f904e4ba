# What scripts/stack-test does to a stack that runs, and what it gets wrong on purpose.

# Seconds from the start of the worker's container to its registration, by the clock of the engine.
start_up_time() {
    local id started ready
    stack up -d --force-recreate --no-deps worker >"$work/up.log" 2>&1 \
        || { cat "$work/up.log" >&2; fail "the worker does not start" "see the lines above" 1; }
    id=$(stack ps -q worker | sed -n 1p)
    await "the worker is ready" 60 worker_says "$id" 'is ready'
    started=$("$docker" inspect "$id" --format '{{.State.StartedAt}}')
    ready=$("$docker" logs -t "$id" 2>&1 | sed -nE 's/^([^ ]+) .* is ready$/\1/p' | sed -n 1p)
    say "a worker is ready $(awk -v a="$(date -d "$started" +%s.%N)" -v b="$(date -d "$ready" +%s.%N)" 'BEGIN { printf "%.2f", b - a }') s after its container has started"
    await "its health check passes" 60 is_healthy "$id"
}

worker_says() { "$docker" logs "$1" 2>&1 | grep -q "$2"; }
is_healthy() { [ "$("$docker" inspect "$1" --format '{{.State.Health.Status}}')" = healthy ]; }

# URLs that have ended of the newest batch.
finished() {
    stack exec -T redis sh -c 'redis-cli hget "prefetch:{default}:b:$(redis-cli zrange "prefetch:{default}:batches" -1 -1)" finished' 2>/dev/null \
        | tr -dc 0-9 || true
}
has_finished() { local now; now=$(finished); [ "${now:-0}" -ge "$1" ]; }

run_with_faults() {
    say "up with two workers, $count URLs"
    stack up -d --scale worker=2 redis origin worker >"$work/up.log" 2>&1 \
        || { cat "$work/up.log" >&2; fail "the stack with two workers does not start" "see the lines above" 1; }
    stack --profile test run --rm verify >"$work/verify.log" 2>&1 &
    local verify=$! victim code=0
    await "a fifth of the URLs" 300 has_finished $((count / 5))
    victim=$(stack ps -q worker | sed -n 1p)
    "$docker" kill -s KILL "$victim" >/dev/null
    say "killed a worker's container at $(finished) of $count URLs"
    await "two fifths of the URLs" 300 has_finished $((count * 2 / 5))
    "$docker" restart -t 5 "$(stack ps -q redis)" >/dev/null
    say "started Redis anew; it has $(finished) of $count URLs"
    await "three fifths of the URLs" 300 has_finished $((count * 3 / 5))
    "$docker" start "$victim" >/dev/null
    say "started the worker's container again"
    wait "$verify" || code=$?
    cat "$work/verify.log"
    [ $code -eq 0 ] || fail "verify ended with $code after the faults" "see the lines above" 1
    "$docker" logs "$victim" 2>&1 | tail -n 4 >&2
}

# A path of Prometheus, by HTTP/1.0 without a client of its own.
prometheus() { # path
    local address
    address=$(stack --profile metrics port prometheus 9090 2>/dev/null) || return 0
    { exec 3<>"/dev/tcp/${address%:*}/${address##*:}" && printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3 && tr -d '\r' <&3 | sed '1,/^$/d'; } 2>/dev/null || true
}
# The one number a query comes to.
asked() {
    prometheus "/api/v1/query?query=$1" \
        | python3 -c 'import json, sys; found = json.load(sys.stdin)["data"]["result"]; print(found[0]["value"][1] if found else "")' 2>/dev/null || true
}
says() { [ "$(asked "$1")" = "$2" ]; }

# What the profile `metrics` shows of a batch that is done: as many URLs as it has, and every rule of the alerts.
check_metrics() { # URLs
    local rules want
    stack --profile metrics up -d exporter prometheus >"$work/up.log" 2>&1 || { tail -n 5 "$work/up.log" >&2; stack --profile metrics logs --no-color --tail 5 exporter prometheus >&2; fail "the profile metrics did not start" "see the lines above" 1; }
    await "Prometheus reaches the exporter" 60 says 'up{job="prefetch"}' 1
    await "Prometheus has the counts of the batch" 30 says 'sum(prefetch_urls_total)' "$1"
    await "Prometheus sees the workers" 30 says 'sum(prefetch_workers)' "$(stack ps -q worker | wc -l)"
    want=$(grep -c -- '- alert:' docs/alerts.yaml)
    rules=$(prometheus /api/v1/rules \
        | python3 -c 'import json, sys; print(sum(rule["type"] == "alerting" for group in json.load(sys.stdin)["data"]["groups"] for rule in group["rules"]))')
    [ "$rules" -eq "$want" ] || fail "Prometheus has $rules alerts in place of $want" "see docs/alerts.yaml" 1
    say "Prometheus: $(asked 'sum(prefetch_urls_total)') URLs, $(asked 'sum(prefetch_workers)') workers, $rules alerts"
}

# A list of this machine, and then its images in a folder of it, named by their lines.
take_images_out() {
    local want got code=0
    "$docker" run --rm "$PREFETCH_IMAGE" prefetch-origin manifest --count 100 >"$work/manifest"
    cut -f 2 "$work/manifest" >"$work/urls.txt"
    mkdir -m 0777 "$work/images"
    chmod 0711 "$work"
    stack --profile tools run --rm -T -v "$work/urls.txt:/urls.txt:ro" coord submit --wait --timeout 5s --max-per-host 0 --quiet /urls.txt >"$work/submit.log" 2>&1 || code=$?
    [ $code -eq 3 ] || { cat "$work/submit.log" >&2; fail "submit --wait ended with $code in place of 3" "see the lines above" 1; }
    stack --profile tools run --rm -T --user "$(id -u):$(id -g)" -v "$work/images:/images" -v "$work/urls.txt:/urls.txt:ro" \
        coord export --format files --out /images >"$work/export.log" 2>&1 \
        || { cat "$work/export.log" >&2; fail "the images cannot be exported" "see the lines above" 1; }
    want=$(awk -F '\t' '$3 == "downloaded"' "$work/manifest" | wc -l)
    got=$(find "$work/images" -type f | wc -l)
    [ "$got" -eq "$want" ] || { cat "$work/export.log" >&2; fail "$got images in the folder in place of $want" "see docs/OPERATIONS.md" 1; }
    say "$got images of a list are in a folder of this machine"
}

# compose.yaml alone queues nothing, and worker.yaml gives its Redis, here with a password, a worker of one more machine.
production() {
    local status gateway
    say "compose.yaml alone, with two workers, and worker.yaml beside it"
    alone() { "${compose[@]}" -p "$project-alone" -f docker/compose.yaml "$@"; }
    further() { "${compose[@]}" -p "$project-further" -f docker/worker.yaml "$@"; }
    alone up -d --scale worker=2 >"$work/up.log" 2>&1 || { tail -n 5 "$work/up.log" >&2; fail "compose.yaml alone does not start" "see the lines above" 1; }
    await "both workers are there" 60 has_workers 2
    status=$(alone --profile tools run --rm -T coord status 2>/dev/null)
    [ "${status%%$'\n'*}" = "no batches" ] || fail "compose.yaml alone has something in its queue: $status" "see docker/compose.yaml" 1
    gateway=$("$docker" network inspect bridge --format '{{(index .IPAM.Config 0).Gateway}}')
    printf 'a secret\n' >"$work/password"
    chmod 0644 "$work/password"
    chmod 0711 "$work"
    "$docker" run -d --name "$project-redis" -p "$gateway::6379" "$redis_image" \
        redis-server --maxmemory-policy noeviction --appendonly yes --requirepass "a secret" >"$work/redis.log" 2>&1 \
        || { cat "$work/redis.log" >&2; fail "a Redis with a password does not start" "see the lines above" 1; }
    started_containers+=("$project-redis")
    PREFETCH_REDIS_URL=redis://$("$docker" port "$project-redis" 6379 | sed -n 1p)/0
    export PREFETCH_REDIS_URL PREFETCH_REDIS_PASSWORD=$work/password PREFETCH_REDIS_PASSWORD_FILE=/run/redis-password PREFETCH_HOST=img-02
    further up -d >"$work/up.log" 2>&1 || { tail -n 5 "$work/up.log" >&2; fail "worker.yaml does not start" "see the lines above" 1; }
    await "the worker of the further machine is ready" 60 worker_says "$(further ps -q worker)" 'worker img-02:.* is ready'
    say "and then: $("$docker" logs "$(further ps -q worker)" 2>&1 | grep -m 1 'is ready')"
    further down -v -t 40 >"$work/down.log" 2>&1
    unset PREFETCH_REDIS_URL PREFETCH_REDIS_PASSWORD PREFETCH_REDIS_PASSWORD_FILE PREFETCH_HOST
    alone down -v -t 40 >>"$work/down.log" 2>&1
}
has_workers() { # how many
    alone --profile tools run --rm -T coord workers --json 2>/dev/null | python3 -c 'import json, sys
try: workers = json.load(sys.stdin)["workers"]
except ValueError: sys.exit(1)
sys.exit(sum(worker["lease_left_seconds"] is not None for worker in workers) < int(sys.argv[1]))' "$1"
}

# A program of the image that has to end with a code and a line; nothing may end in silence.
ends_with() { # code, pattern, options of docker run… -- program…
    local code=$1 pattern=$2 got=0 options=()
    shift 2
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    timeout 60 "$docker" run --rm --read-only --cap-drop ALL --network "${project}_default" "${options[@]}" "$PREFETCH_IMAGE" "$@" \
        >"$work/said" 2>&1 || got=$?
    grep -Eq "$pattern" "$work/said" && [ $got -eq "$code" ] || {
        cat "$work/said" >&2
        fail "$*: ended with $got and not with $code and '$pattern'" "see the lines above" 1
    }
    say "$(grep -E "$pattern" "$work/said" | head -n 1) (exit code $got)"
}

bad_inputs() {
    local redis=(-e PREFETCH_REDIS_URL=redis://redis:6379/0) id
    say "what may be wrong:"
    ends_with 73 '^error: .*/cache' "${redis[@]}" -- prefetch-worker
    ends_with 73 '^error: .*/cache' "${redis[@]}" -v "${project}_cache:/cache:ro" -- prefetch-worker
    # The image speaks TLS: a Redis that does not is told from an image that cannot.
    ends_with 69 '^error: ' -v "${project}_cache:/cache" -- prefetch-coord status --redis rediss://redis:6379/0
    # No authorities: nobody's URL is blamed for that.
    stack exec -T redis redis-cli flushall >/dev/null
    stack stop -t 40 worker >"$work/stop.log" 2>&1
    id=$("$docker" run -d --read-only --network "${project}_default" "${redis[@]}" -e PREFETCH_ALLOW_NET="${PREFETCH_SUBNET:-172.31.99.0/24}" \
        -v "${project}_cache:/cache" --tmpfs /etc/ssl/certs "$PREFETCH_IMAGE" prefetch-worker)
    started_containers+=("$id")
    "$docker" run --rm --network "${project}_default" "${redis[@]}" "$PREFETCH_IMAGE" \
        sh -c 'echo https://demo.prefetch.example:80/a.jpg | prefetch-coord submit --cache /cache -' >"$work/submit.log" 2>&1
    await "the worker without authorities says so" 60 worker_says "$id" 'paused: '
    say "$("$docker" logs "$id" 2>&1 | grep -m 1 'paused: ')"
    "$docker" rm -f "$id" >/dev/null
}
