internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// The metrics of a queue, its workers and a cache; all are in docs/METRICS.md.
enum QueueMetrics {
    /// Figures of a cache that are known without a scan.
    struct Cache: Sendable {
        var count: Int?, size: Int?, free: Int?

        init(count: Int?, size: Int?, free: Int?) { (self.count, self.size, self.free) = (count, size, free) }

        /// Nil if there is no such folder.
        init?(_ folder: String) {
            var status = stat()
            guard stat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return nil }
            // Must not turn a folder into a cache.
            if access("\(folder)/.prefetch", F_OK) == 0, let known = try? DiskCache(directory: folder).account.totals {
                (count, size) = (known.count, known.size)
            }
            var system = statvfs()
            if statvfs(folder, &system) == 0 { free = Int(clamped: Double(system.f_bavail) * Double(system.f_frsize)) }
        }
    }

    static func away(_ cache: Cache?, took: Double) -> [MetricFamily] {
        [build, up(0)] + cacheFamilies(cache) + [scrape(took)]
    }

    /// All families.
    /// * `took`: duration of the reading in seconds.
    static func families(_ queue: QueueSnapshot, _ cache: Cache?, took: Double) -> [MetricFamily] {
        var jobs = MetricFamily(
            "prefetch_queue_jobs", "Jobs on lists, and jobs that workers have; use it for autoscaling.")
        jobs.add(queue.waitingJobs, ("state", "waiting"))
        jobs.add(queue.claimedJobs, ("state", "claimed"))
        let families = [
            build, up(1), MetricFamily("prefetch_redis_used_memory_bytes", "Memory that Redis uses.", queue.usedMemory),
            MetricFamily(
                "prefetch_redis_max_memory_bytes", "Memory that Redis may use; 0 = no limit.", queue.maxMemory),
            MetricFamily(
                "prefetch_queue_paused", "1 while the whole queue is paused.", queue.settings.isPaused ? 1 : 0),
            MetricFamily(
                "prefetch_running_batches", "Batches that are neither done nor cancelled.", queue.running.count), jobs,
            MetricFamily(
                "prefetch_dead_elements", "Invalid entries moved from job lists to the dead-letter list.", queue.dead),
            MetricFamily("prefetch_blacklist_urls", "URLs on the blacklist.", queue.failedURLs),
        ]
        return families + batches(queue) + workers(queue) + limits(queue) + cacheFamilies(cache) + [scrape(took)]
    }

    private static var build: MetricFamily {
        var family = MetricFamily("prefetch_build_info", "1; the versions of prefetch and of its libraries.")
        // `libcurl/7.88.1 OpenSSL/3.0.11 …` and `libjpeg-turbo 2.1.5, libpng 1.6.39, …`
        let curl = TransportFacts.versions.split(separator: " ").first?.split(separator: "/").last ?? ""
        let codecs = CodecLibraries.versions.split(separator: ",").map { $0.split(separator: " ") }
        func version(_ library: String) -> String {
            codecs.first { $0.first == library[...] }?.last.map { String($0) } ?? ""
        }
        family.add(
            1, ("version", PrefetchVersion), ("libcurl", String(curl)), ("jpeg", version("libjpeg-turbo")),
            ("png", version("libpng")))
        return family
    }

    private static func up(_ value: Int) -> MetricFamily {
        MetricFamily("prefetch_redis_up", "1 if Redis responds; 0: no metrics of the queue.", value)
    }

    private static func scrape(_ seconds: Double) -> MetricFamily {
        var family = MetricFamily(
            "prefetch_scrape_duration_seconds", "Time to read these values from Redis, in seconds.")
        family.add(seconds)
        return family
    }

    private static func batches(_ queue: QueueSnapshot) -> [MetricFamily] {
        var images = MetricFamily(
            "prefetch_urls_total", "URLs of the batch by outcome, for all outcomes; their sum is finished.")
        var tries = MetricFamily(
            "prefetch_tries_total", "Requests that succeeded and that failed; redirects are not counted.")
        var durations = MetricFamily(
            "prefetch_fetch_duration_seconds",
            "Time of the last request of each image, to the last byte: 1 ms, 2 ms, 4 ms and so on, to 131 s.")
        durations.kind = .histogram
        var state = MetricFamily("prefetch_batch_state", "1 for the state of the batch, 0 for the others.")
        for batch in queue.batches {
            for outcome in PrefetchOutcome.allCases {
                images.add(batch.counts[outcome], ("batch", batch.id), ("outcome", outcome.name))
            }
            let fetches = batch.fetches
            tries.add(fetches.successfulTries, ("batch", batch.id), ("result", "good"))
            tries.add(fetches.failedTries, ("batch", batch.id), ("result", "failed"))
            let (total, sum) = (fetches.durations.total, Double(fetches.durations.sum) / 1e6)
            durations.add(buckets: fetches.durations.doublings, total: total, sum: sum, ("batch", batch.id))
            let present = batch.isEffectivelyPaused ? "paused" : batch.state.rawValue
            for name in ["running", "paused", "done", "cancelled"] {
                state.add(name == present ? 1 : 0, ("batch", batch.id), ("state", name))
            }
        }
        let rows = BatchAnswer.fields.compactMap { field in
            field.metric.map { metric in
                var family = MetricFamily("prefetch_" + metric, field.about ?? "")
                for batch in queue.batches {
                    if let number = field.value(BatchAnswer(batch))?.number { family.add(number, ("batch", batch.id)) }
                }
                return family
            }
        }
        let done = MetricFamily(
            "prefetch_batch_last_completion_timestamp_seconds", "When a batch was done last.",
            queue.batches.filter { $0.state == .done }.map(\.ended).max().map { $0 / 1000 })
        return [images, tries, durations, state] + rows + [done]
    }

    private static func workers(_ queue: QueueSnapshot) -> [MetricFamily] {
        let workers = queue.workers.values
        var states = MetricFamily(
            "prefetch_workers",
            "Registered workers: running, paused by a person, paused by a local fault, held by a disk that does not respond, overdue."
        )
        for state in WorkerReport.State.allCases.reversed() {
            states.add(workers.count { $0.condition == state }, ("state", state.rawValue))
        }
        let held = MetricFamily(
            "prefetch_workers_held_since_timestamp_seconds",
            "Since when the first worker is held by a disk that does not respond; absent if none is.",
            workers.compactMap(\.report.held?.since).min().map { $0 / 1000 })
        var all = WorkerReport()
        for worker in workers { all.join(worker.report) }
        let figures = WorkerReport.figures.compactMap { figure in
            figure.about.metric.map { MetricFamily($0, figure.about.help, figure.value(all) ?? 0) }
        }
        let names = all.names ?? NameReport()
        var queries = MetricFamily(
            "prefetch_name_queries",
            "Queries to resolvers since the start of the present workers, by their end; cached are look-ups without one."
        )
        let ends = [
            ("answered", names.answered), ("nxdomain", names.noNames), ("failed", names.failed),
            ("unanswered", names.unanswered), ("cached", names.cacheHits),
        ]
        for (name, count) in ends { queries.add(count, ("end", name)) }
        return [states, held] + figures + [
            MetricFamily(
                "prefetch_workers_lost_total",
                "Workers that were killed, crashed, or stalled for longer than their lease; one that exits on SIGTERM does not count.",
                queue.lostWorkers),
            MetricFamily(
                "prefetch_jobs_reclaimed_total", "Jobs of lost workers that were put back.", queue.reclaimedJobs),
            MetricFamily(
                "prefetch_urls_reclaimed_total",
                "URLs of those jobs without an outcome; another worker processes them, whether the first had begun or not.",
                queue.reclaimedURLs), queries,
            MetricFamily("prefetch_waiting_names", "Names whose addresses are being asked for.", names.waiting),
            MetricFamily(
                "prefetch_name_window", "Queries that workers may have in flight: few if the resolver drops queries.",
                names.window),
            MetricFamily(
                "prefetch_workers_without_resolver", "Workers whose resolver answers nothing.",
                workers.count { $0.report.names?.silence ?? 0 > 0 }),
        ]
    }

    /// What holds the queue's running batches back, of the newest.
    private static func limits(_ queue: QueueSnapshot) -> [MetricFamily] {
        var present = MetricFamily("prefetch_limit_info", "1; what holds the run back; absent if no batch is running.")
        let limit = RunLimit(workers: queue.workers, batches: queue.batches)
        if let limit { present.add(1, ("cause", limit.cause.rawValue), ("option", LimitText.option(limit) ?? "")) }
        var workers = MetricFamily("prefetch_limited_workers", "Workers by what holds them back.")
        var seconds = MetricFamily(
            "prefetch_limit_seconds_total", "Time of workers that had URLs of the batch, by what held them back.")
        for cause in LimitCause.allCases where cause != .workers {
            workers.add(queue.workers.values.count { $0.report.limit == cause }, ("cause", cause.rawValue))
            for batch in queue.batches where batch.limits[cause] > 0 {
                seconds.add(Double(batch.limits[cause]) / 1000, ("batch", batch.id), ("cause", cause.rawValue))
            }
        }
        return [present, workers, seconds]
    }

    private static func cacheFamilies(_ cache: Cache?) -> [MetricFamily] {
        [
            MetricFamily(
                "prefetch_cache_images", "Images in the cache of --cache; absent until they have been counted.",
                cache?.count),
            MetricFamily("prefetch_cache_bytes", "Bytes that these images take of the disk.", cache?.size),
            MetricFamily("prefetch_cache_disk_free_bytes", "Free bytes of its disk.", cache?.free),
        ]
    }
}
