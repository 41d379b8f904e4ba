/// Every key of a queue, as Swift properties; `Scripts/prelude.lua` has the same names in Lua, with which each script builds them from
/// its one declared key. All keys of a queue share the hash tag `{queue}`, so a Redis Cluster keeps them in
/// one slot. `docs/PROTOCOL.md` describes the contents.
package struct PrefetchKeys: Sendable {
    /// `prefetch:{queue}`, what scripts get as KEYS[1].
    package let root: String
    /// The queue's name.
    package let queue: String

    package init(queue: String) {
        self.queue = queue
        root = "prefetch:{\(queue)}"
    }

    /// ZSET, batch id -> creation time in ms.
    package var batches: String { root + ":batches" }
    /// SET of the ids of batches that are neither done nor cancelled.
    package var running: String { root + ":running" }
    /// HASH with everything about a batch but its outcomes.
    package func batch(_ id: String) -> String { root + ":b:" + id }
    /// STRING, one outcome byte per URL index, 0 = open.
    package func outcomes(_ id: String) -> String { root + ":b:" + id + ":o" }
    /// HASH, URL index -> what was skipped and why.
    package func skipped(_ id: String) -> String { root + ":b:" + id + ":skipped" }
    /// HASH, chunk of 256 URL indices -> the status, tries and time of each failure in it (``FailureRecord``).
    package func records(_ id: String) -> String { root + ":b:" + id + ":records" }
    /// HASH, address that the policy refused -> the sentence, once per address.
    package func refused(_ id: String) -> String { root + ":b:" + id + ":refused" }
    /// HASH, `worker:code` -> URLs of that outcome the worker was first to settle; `worker:bytes`.
    package func workerCounts(_ id: String) -> String { root + ":b:" + id + ":w" }
    /// HASH, host -> `finished skipped bytes`, of up to 256 hosts.
    package func hosts(_ id: String) -> String { root + ":b:" + id + ":hosts" }
    /// HASH, job -> deliveries that ended in a death without a report; `job!` -> deaths under the mark.
    package func tries(_ id: String) -> String { root + ":b:" + id + ":tries" }
    /// LIST of the batch's jobs; the coordinator pushes left, workers pop right.
    package func jobs(_ id: String) -> String { root + ":jobs:" + id }
    /// LIST of the ids of batches of one priority that have jobs.
    package func ready(_ priority: PrefetchPriority) -> String { root + ":ready:" + priority.rawValue }
    /// LIST with one element exactly while a ready list is not empty and the queue is not paused: idle workers wait on it.
    package var bell: String { root + ":bell" }
    /// STRING, since when the queue is paused, in ms; not there while it is not.
    package var paused: String { root + ":paused" }
    /// STRING, transfers in flight that all workers were told to have; not there where each has its own number.
    package var concurrency: String { root + ":concurrency" }
    /// ZSET, worker -> end of its lease in ms.
    package var workers: String { root + ":workers" }
    /// ZSET, worker that left or was lost within a day -> when, in ms.
    package var gone: String { root + ":gone" }
    /// HASH about one worker, kept a day after its end.
    package func worker(_ id: String) -> String { root + ":w:" + id }
    /// HASH, `job@nonce` -> payload, of what a worker has claimed; the nonce is that of the job's batch.
    package func owned(by worker: String) -> String { root + ":own:" + worker }
    /// HASH, the latest time anybody saw, and how far the queue's clock is ahead of Redis' own since that went back.
    package var clock: String { root + ":clock" }
    /// STRING, the time until which nobody may be reaped, in ms.
    package var hold: String { root + ":hold" }
    /// LIST of payloads that are no jobs, newest first, at most 1,000.
    package var dead: String { root + ":dead" }
    /// HASH, batch -> end in ms of the time in which none of its jobs is given out, because it is being repaired.
    package var held: String { root + ":held" }
    /// What was found under this name of the queue and had a wrong type; goes after a week.
    package func aside(_ name: String) -> String { root + ":aside:" + name }
    /// HASH, slot -> the running batch that has it.
    package var slots: String { root + ":slots" }
    /// HASH, what lost workers have left behind since the queue was made: `workers`, `jobs`, `urls`.
    package var losses: String { root + ":losses" }
    /// ZSET, running batch -> when it ends at the latest, in ms.
    package var deadlines: String { root + ":deadlines" }
    /// HASH, id of a cache that has images of the batch -> its number, host and directory, blanks between.
    package func caches(_ id: String) -> String { root + ":b:" + id + ":caches" }
    /// STRING, a byte per URL index: the number of the cache its image is in; 0, the first one, also where the string ends before it.
    package func places(_ id: String) -> String { root + ":b:" + id + ":places" }
    /// LIST of the lists of a batch that was submitted open, in their order.
    package func lists(_ id: String) -> String { root + ":b:" + id + ":lists" }
    /// HASH, host that gives no answer or asked to be left alone -> since when, until when, why; `#v` counts its changes.
    package var hosts: String { root + ":hosts" }
    /// STRING, the first instant in microseconds at which nobody may send a request to the host yet.
    package func rate(_ host: String) -> String { root + ":rate:" + host }
    /// STRING, what a site's robots.txt asks of a program, or who reads it.
    package func robots(_ site: String, agent: String) -> String { root + ":robots:" + agent + " " + site }
    /// SET of failed URLs.
    package var failed: String { root + ":failed" }
    /// HASH, failed URL -> since when, how often, why.
    package var failedMeta: String { root + ":failed:meta" }
    /// ZSET, failed URL -> when it lapses, in ms.
    package var failedLapses: String { root + ":failed:lapses" }
    /// ZSET, failed URL that does not lapse -> its last failure, in ms.
    package var failedStays: String { root + ":failed:stays" }
    /// HASH, how many failed URLs batches may have listed, and how many went because they were more.
    package var failedLimit: String { root + ":failed:limit" }
    /// How many they may have listed where nothing is said, also in `Scripts/prelude.lua`.
    package static let failedLimitDefault = 500_000
}
