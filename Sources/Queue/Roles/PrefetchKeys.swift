/// Every key of a queue. `Scripts/prelude.lua` has the same names in Lua; each script builds them from its one declared key. All keys of a
/// queue share the hash tag `{queue}`, so a Redis Cluster keeps them in one slot.
/// `scripts/lib/scripts-table` makes the table of `docs/PROTOCOL.md` from what is said of each: its type, and its content.
package struct PrefetchKeys: Sendable {
    /// `prefetch:{queue}`, KEYS[1] of the scripts.
    package let root: String
    package let queue: String

    package init(queue: String) {
        self.queue = queue
        root = "prefetch:{\(queue)}"
    }

    /// ZSET, batch -> creation time. Those of batches that are gone are removed with a later OPEN.
    package var batches: String { root + ":batches" }
    /// SET, batches that are neither done nor cancelled.
    package var running: String { root + ":running" }
    /// HASH, the record of a batch, about 1 KB.
    package func batch(_ id: String) -> String { root + ":b:" + id }
    /// STRING, one outcome byte per URL index, 0 = open.
    package func outcomes(_ id: String) -> String { root + ":b:" + id + ":o" }
    /// HASH, index -> `line outcome[/reason] status tries url detail`, separated by TAB, then the URL's own settings as in its job; up to
    /// `details` entries (100,000).
    package func skipped(_ id: String) -> String { root + ":b:" + id + ":skipped" }
    /// HASH, index / 256 -> nine bytes for each run of equal failures; under 8 MB for 250,000 spread ones.
    package func records(_ id: String) -> String { root + ":b:" + id + ":records" }
    /// HASH, address that the policy refused -> sentence.
    package func refused(_ id: String) -> String { root + ":b:" + id + ":refused" }
    /// HASH, `worker:code` -> URLs that the worker was first to settle with it; `worker:bytes`.
    package func workerCounts(_ id: String) -> String { root + ":b:" + id + ":w" }
    /// HASH, host -> `finished skipped bytes` of its requests, of up to 256 hosts.
    package func hosts(_ id: String) -> String { root + ":b:" + id + ":hosts" }
    /// HASH, job, and `job!`, `job?`, `job~`, `job^` -> what is known of it; empty unless workers die, lose their network, cannot store
    /// files or refuse URLs.
    package func tries(_ id: String) -> String { root + ":b:" + id + ":tries" }
    /// LIST, waiting jobs, up to the window. Feeders push on the left, workers pop on the right, of a `lifo` batch on the left.
    package func jobs(_ id: String) -> String { root + ":jobs:" + id }
    /// LIST, batches of this priority that have jobs and are not paused, each once.
    package func ready(_ priority: PrefetchPriority) -> String { root + ":ready:" + priority.rawValue }
    /// LIST, one element exactly while a ready list has one and the queue is not paused: idle workers block on it.
    package var bell: String { root + ":bell" }
    /// STRING, since when the whole queue is paused.
    package var paused: String { root + ":paused" }
    /// STRING, transfers in flight, or `auto`, set for all workers.
    package var concurrency: String { root + ":concurrency" }
    /// ZSET, worker -> end of its lease.
    package var workers: String { root + ":workers" }
    /// ZSET, worker that left or was lost within a day -> when.
    package var gone: String { root + ":gone" }
    /// HASH, the record of a worker, under 5 KB; for a day after its end.
    package func worker(_ id: String) -> String { root + ":w:" + id }
    /// HASH, claim (`job@nonce`, the nonce of the job's batch) -> payload; `#seq` and `#jobs` of its last claim, `#mark`, `#unheld` (claims
    /// missing from its last heartbeat).
    package func owned(by worker: String) -> String { root + ":own:" + worker }
    /// HASH, `last`: the latest time seen, at most a second behind; `ahead`: ms by which the queue's clock is ahead of Redis' own since
    /// that went back.
    package var clock: String { root + ":clock" }
    /// STRING, until when no worker may be reaped.
    package var hold: String { root + ":hold" }
    /// LIST, elements of job lists that were not jobs, the first 64 KiB of each, newest first, at most 1,000.
    package var dead: String { root + ":dead" }
    /// STRING, present for a lease after a worker has healed the queue.
    package var healed: String { root + ":healed" }
    /// ANY, a key that had a wrong type, renamed; for a week.
    package func aside(_ name: String) -> String { root + ":aside:" + name }
    /// HASH, slot -> the running batch that has it.
    package var slots: String { root + ":slots" }
    /// HASH, counts of REAP since the queue was created: lost `workers`, their `jobs` that were put back, `urls` of those without an
    /// outcome.
    package var losses: String { root + ":losses" }
    /// ZSET, running batch -> latest time of its end.
    package var deadlines: String { root + ":deadlines" }
    /// HASH, id of a cache with images of the batch -> `number host directory`; 0 is the first, from the 256th on all have 255.
    package func caches(_ id: String) -> String { root + ":b:" + id + ":caches" }
    /// STRING, one byte per URL index: the number of the cache with its image; 0 also beyond its end, so it is empty with one cache.
    package func places(_ id: String) -> String { root + ":b:" + id + ":places" }
    /// HASH, shard -> `writer`, that owns it, or `writer bytes`, that has written it; `@writer` -> end of its lease.
    package func shards(_ id: String) -> String { root + ":b:" + id + ":shards" }
    /// ZSET, `rate URL` (`-`: no rate) of an image that a worker has fetched within a minute -> when; up to 64.
    package var witnesses: String { root + ":witnesses" }
    /// HASH, host -> `state until since failures code reason`, or `slow until since transfers ms best_ms`; `#v`: number of changes; for an
    /// hour after the last one.
    package var hosts: String { root + ":hosts" }
    /// STRING, the first instant, in microseconds since 1970, that is not reserved for requests to the host that are so many apart; for 10
    /// s after it.
    package func rate(_ host: String, interval: Int) -> String { root + ":rate:" + host + " " + String(interval) }
    /// STRING, a site's robots.txt for one program, as rules for `*` (an hour); `!` and why it cannot be read (a minute); `?` and the
    /// worker that reads it (30 s).
    package func robots(_ site: String, agent: String) -> String { root + ":robots:" + agent + " " + site }
    /// STRING, how a download ended that other processes waited for, by a digest of what was asked for; for 5 s.
    package func failure(_ question: String) -> String { root + ":failure:" + question }
    /// SET, the blacklist, plain; `SADD` and `SREM` by hand are allowed.
    package var failed: String { root + ":failed" }
    /// HASH, URL -> `first last count next outcome status batch detail`, separated by blanks; none for a member added by hand.
    package var failedMeta: String { root + ":failed:meta" }
    /// ZSET, blacklisted URL that lapses -> when.
    package var failedExpiring: String { root + ":failed:lapses" }
    /// ZSET, blacklisted URL that a batch has added and that does not lapse -> its last failure.
    package var failedPermanent: String { root + ":failed:stays" }
    /// HASH, `max`: most URLs that batches add (absent: 500,000; 0: no limit), set by hand; how many were `removed` for it.
    package var failedLimit: String { root + ":failed:limit" }

    // Only scripts build these:
    // `turns`: HASH, the clocks of the priorities (`high`, `normal`, `low`) and of the last claim (`now`).
    // `conns:<host>`: HASH, `worker limit` -> its transfers to the host (`addr:<address>:<port>`: to the address) with that limit, and how
    // many it could use; for a minute.
    // `rate:#bytes <us>`: STRING, the same as of a host for the portions of `--limit-rate-of-queue`.
    // `robots:sum`: STRING, bytes of the robots.txt of an hour, keys and 100 each included; beyond 8 MiB each worker reads them itself.

    /// The default limit, also in `Scripts/prelude.lua`.
    package static let failedLimitDefault = 500_000
}
