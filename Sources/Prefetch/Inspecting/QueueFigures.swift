/// What a queue comes to at one moment, for whoever draws it over time.
package struct QueueFigures: Sendable {
    /// The newest batches, newest first.
    package var batches: [BatchStatus] = []
    /// Batches that are neither done nor cancelled.
    package var running = 0
    /// Jobs on the lists of running batches, and jobs that workers have.
    package var jobsWaiting = 0, jobsClaimed = 0
    /// Whether nothing of any batch begins.
    package var isPaused = false
    /// URLs on the list of failed ones.
    package var failedURLs = 0
    /// Elements of job lists that were no jobs.
    package var dead = 0
    /// Whoever is registered, by name.
    package var workers: [String: BatchLook.Worker] = [:]
    /// Workers that were lost since the queue was made, the jobs that others got of theirs, and the URLs of those that were open.
    package var lostWorkers = 0, reclaimedJobs = 0, reclaimedURLs = 0
    /// Bytes that Redis uses, and may use (0 = no limit).
    package var usedMemory = 0, maxMemory = 0

    /// Nothing.
    package init() {}
}
