/// Every key of a queue. `Scripts/prelude.lua` has the same names in Lua; each script builds them from its one declared key. All keys of a
/// queue share the hash tag `{queue}`, so a Redis Cluster keeps them in one slot. `docs/PROTOCOL.md` describes the contents.
package struct PrefetchKeys: Sendable {
    /// `prefetch:{queue}`, KEYS[1] of the scripts.
    package let root: String
    package let queue: String

    package init(queue: String) {
        self.queue = queue
        root = "prefetch:{\(queue)}"
    }

    /// ZSET, batch id -> creation time in ms.
    package var batches: String { root + ":batches" }
    /// SET of the ids of batches that are neither done nor cancelled.
    package var running: String { root + ":running" }
    /// HASH with everything about a batch except its outcomes.
    package func batch(_ id: String) -> String { root + ":b:" + id }
    /// STRING, one outcome byte per URL index, 0 = open.
    package func outcomes(_ id: String) -> String { root + ":b:" + id + ":o" }
    /// HASH, URL index -> details of a skipped URL.
    package func skipped(_ id: String) -> String { root + ":b:" + id + ":skipped" }
    /// HASH, chunk of 256 URL indices -> the status, tries and time of each failure in it (``FailureRecord``).
    package func records(_ id: String) -> String { root + ":b:" + id + ":records" }
    /// HASH, address refused by the policy -> reason.
    package func refused(_ id: String) -> String { root + ":b:" + id + ":refused" }
    /// HASH, `worker:code` -> URLs of that outcome the worker was first to settle; `worker:bytes`.
    package func workerCounts(_ id: String) -> String { root + ":b:" + id + ":w" }
    /// HASH, host -> `finished skipped bytes`, of up to 256 hosts.
    package func hosts(_ id: String) -> String { root + ":b:" + id + ":hosts" }
    /// HASH, job -> deliveries that ended in a death without a report; `job!` -> deaths under the mark; `job~` -> workers that gave it back
    /// because of their own network.
    package func tries(_ id: String) -> String { root + ":b:" + id + ":tries" }
    /// LIST of the batch's jobs; the coordinator pushes left, workers pop right.
    package func jobs(_ id: String) -> String { root + ":jobs:" + id }
    /// LIST of the ids of batches of one priority that have jobs.
    package func ready(_ priority: PrefetchPriority) -> String { root + ":ready:" + priority.rawValue }
    /// LIST with one element exactly while a ready list is not empty and the queue is not paused: idle workers block on it.
    package var bell: String { root + ":bell" }
    /// STRING, start of the queue's pause in ms; absent if it is not paused.
    package var paused: String { root + ":paused" }
    /// STRING, concurrent transfers set for all workers; absent if each has its own number.
    package var concurrency: String { root + ":concurrency" }
    /// ZSET, worker -> end of its lease in ms.
    package var workers: String { root + ":workers" }
    /// ZSET, worker that left or was lost within a day -> when, in ms.
    package var gone: String { root + ":gone" }
    /// HASH about one worker, kept a day after its end.
    package func worker(_ id: String) -> String { root + ":w:" + id }
    /// HASH, `job@nonce` -> payload of the worker's claims; the nonce is that of the job's batch.
    package func owned(by worker: String) -> String { root + ":own:" + worker }
    /// HASH, the latest time seen, and how far the queue's clock is ahead of Redis' own since that went back.
    package var clock: String { root + ":clock" }
    /// STRING, until when no worker may be reaped, in ms.
    package var hold: String { root + ":hold" }
    /// LIST of invalid payloads (dead letters), newest first, at most 1,000.
    package var dead: String { root + ":dead" }
    /// STRING, present while no worker needs to heal the queue: one has done so within its lease.
    package var healed: String { root + ":healed" }
    /// A key that had a wrong type, renamed; expires after a week.
    package func aside(_ name: String) -> String { root + ":aside:" + name }
    /// HASH, slot -> the running batch that has it.
    package var slots: String { root + ":slots" }
    /// HASH, what lost workers had since the queue was created: `workers`, `jobs`, `urls`.
    package var losses: String { root + ":losses" }
    /// ZSET, running batch -> deadline in ms.
    package var deadlines: String { root + ":deadlines" }
    /// HASH, id of a cache with images of the batch -> its number, host and directory, separated by blanks.
    package func caches(_ id: String) -> String { root + ":b:" + id + ":caches" }
    /// STRING, one byte per URL index: the number of the cache of its image; 0, the first cache, also beyond the string's end.
    package func places(_ id: String) -> String { root + ":b:" + id + ":places" }
    /// ZSET, rate and URL of an image that a worker has fetched within a minute -> when, in ms.
    package var witnesses: String { root + ":witnesses" }
    /// HASH, host that does not respond or asked for back-off -> since when, until when, why; `#v` counts its changes.
    package var hosts: String { root + ":hosts" }
    /// STRING, the first instant in microseconds that is not yet reserved for requests to the host that have this distance in microseconds.
    package func rate(_ host: String, interval: Int) -> String { root + ":rate:" + host + " " + String(interval) }
    /// STRING, a site's robots.txt rules for a program, or which worker reads it.
    package func robots(_ site: String, agent: String) -> String { root + ":robots:" + agent + " " + site }
    /// STRING, how a download ended that other processes waited for, by a digest of what was asked for.
    package func failure(_ question: String) -> String { root + ":failure:" + question }
    package var failed: String { root + ":failed" }
    /// HASH, failed URL -> since when, how often, why.
    package var failedMeta: String { root + ":failed:meta" }
    /// ZSET, failed URL -> when it lapses, in ms.
    package var failedExpiring: String { root + ":failed:lapses" }
    /// ZSET, failed URL that does not lapse -> its last failure, in ms.
    package var failedPermanent: String { root + ":failed:stays" }
    /// HASH, limit of failed URLs listed by batches, and how many were removed because of it.
    package var failedLimit: String { root + ":failed:limit" }
    /// The default limit, also in `Scripts/prelude.lua`.
    package static let failedLimitDefault = 500_000
}
