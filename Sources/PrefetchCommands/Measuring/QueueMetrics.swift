internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// The metrics of a queue, its workers and a cache; all are in docs/METRICS.md.
enum QueueMetrics {
    /// Figures of a cache that are known without a scan.
    struct Cache: Sendable {
        var count: Int?, size: Int?, free: Int?

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
        [build, up(false)] + cacheFamilies(cache) + [scrape(took)]
    }

    /// All families.
    /// * `took`: duration of the reading in seconds.
    static func families(_ queue: QueueSnapshot, _ cache: Cache?, took: Double) -> [MetricFamily] {
        let families = [
            build, up(true),
            MetricFamily(
                "prefetch_redis_used_memory_bytes", .gauge, "Memory that Redis uses.", Double(queue.usedMemory)),
            MetricFamily(
                "prefetch_redis_max_memory_bytes", .gauge, "Memory that Redis may use; 0 = no limit.",
                Double(queue.maxMemory)),
            MetricFamily(
                "prefetch_queue_paused", .gauge, "1 while the whole queue is paused.", queue.orders.isPaused ? 1 : 0),
            MetricFamily(
                "prefetch_running_batches", .gauge, "Batches that are neither done nor cancelled.",
                Double(queue.running.count)),
            jobs(queue),
            MetricFamily(
                "prefetch_dead_elements", .gauge, "Invalid entries moved from job lists to the dead-letter list.",
                Double(queue.dead)),
            MetricFamily(
                "prefetch_blacklist_urls", .gauge, "URLs on the list of failed ones.", Double(queue.failedURLs)),
        ]
        return families + batches(queue) + workers(queue) + limits(queue) + cacheFamilies(cache) + [scrape(took)]
    }

    private static var build: MetricFamily {
        var family = MetricFamily(
            "prefetch_build_info", .info, "The version of prefetch, and of libraries it runs with.")
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

    private static func up(_ isUp: Bool) -> MetricFamily {
        MetricFamily(
            "prefetch_redis_up", .gauge, "1 if Redis responds; 0: no metrics of the queue.", isUp ? 1 : 0)
    }

    private static func scrape(_ seconds: Double) -> MetricFamily {
        MetricFamily(
            "prefetch_scrape_duration_seconds", .gauge, "Time to read these values from Redis, in seconds.", seconds)
    }

    private static func jobs(_ queue: QueueSnapshot) -> MetricFamily {
        var family = MetricFamily("prefetch_queue_jobs", .gauge, "Jobs that wait in Redis, and jobs that workers have.")
        family.add(Double(queue.waitingJobs), ("state", "waiting"))
        family.add(Double(queue.claimedJobs), ("state", "claimed"))
        return family
    }

    private static func batches(_ queue: QueueSnapshot) -> [MetricFamily] {
        var images = MetricFamily(
            "prefetch_urls_total", .counter, "URLs of a batch that ended so; their sum is finished.")
        var bytes = MetricFamily("prefetch_received_bytes_total", .counter, "Bytes of images that a batch downloaded.")
        var tries = MetricFamily(
            "prefetch_attempts_total", .counter, "Requests that brought what was asked for, and those that did not.")
        var durations = MetricFamily(
            "prefetch_fetch_duration_seconds", .histogram, "Duration of the last requests of images, to the last byte.")
        var urls = MetricFamily("prefetch_batch_urls", .gauge, "URLs of a batch.")
        var state = MetricFamily(
            "prefetch_batch_state", .gauge, "1 for the state that a batch is in, 0 for the others.")
        var created = MetricFamily("prefetch_batch_created_timestamp_seconds", .gauge, "When a batch was made.")
        var last = MetricFamily(
            "prefetch_batch_last_outcome_timestamp_seconds", .gauge, "When a URL of a batch ended last.")
        var took = MetricFamily(
            "prefetch_batch_duration_seconds", .gauge, "Time from the beginning of a batch to its end or now.")
        for batch in queue.batches {
            for outcome in PrefetchOutcome.allCases {
                images.add(Double(batch.counts[outcome]), ("batch", batch.id), ("outcome", outcome.name))
            }
            bytes.add(Double(batch.counts.bytes), ("batch", batch.id))
            let fetches = batch.fetches
            tries.add(Double(fetches.successfulTries), ("batch", batch.id), ("result", "good"))
            tries.add(Double(fetches.failedTries), ("batch", batch.id), ("result", "failed"))
            let (total, sum) = (fetches.durations.total, Double(fetches.durations.sum) / 1e6)
            durations.add(buckets: fetches.durations.doublings, total: total, sum: sum, ("batch", batch.id))
            urls.add(Double(batch.total), ("batch", batch.id))
            let present = batch.isHeld ? "paused" : batch.state.rawValue
            for name in ["running", "paused", "done", "cancelled"] {
                state.add(name == present ? 1 : 0, ("batch", batch.id), ("state", name))
            }
            created.add(Double(batch.created) / 1000, ("batch", batch.id))
            if batch.last > 0 { last.add(Double(batch.last) / 1000, ("batch", batch.id)) }
            took.add(batch.elapsed, ("batch", batch.id))
        }
        var done = MetricFamily(
            "prefetch_batch_last_completion_timestamp_seconds", .gauge, "When a batch was done last, among the newest.")
        if let end = queue.batches.filter({ $0.state == .done }).map(\.ended).max() { done.add(Double(end) / 1000) }
        return [images, bytes, tries, durations, urls, state, created, last, took, done]
    }

    private static func workers(_ queue: QueueSnapshot) -> [MetricFamily] {
        var states = MetricFamily(
            "prefetch_workers", .gauge,
            "Registered workers: running, paused by a person, paused by a local fault, held by a disk that does not respond, "
                + "overdue with their heartbeat."
        )
        for state in WorkerReport.State.allCases.reversed() {
            states.add(Double(queue.workers.values.count { $0.condition == state }), ("state", state.rawValue))
        }
        var held = MetricFamily(
            "prefetch_workers_held_since_timestamp_seconds", .gauge, "Since when the first of the held workers is held."
        )
        if let since = queue.workers.values.compactMap(\.report.held?.since).min() {
            held.add(Double(since) / 1000)
        }
        var all = WorkerReport()
        for worker in queue.workers.values { all.join(worker.report) }
        let figures = WorkerReport.figures.compactMap { figure in
            figure.about.metric.map { MetricFamily($0, .gauge, figure.about.help, Double(figure.value(all) ?? 0)) }
        }
        return [states, held] + figures + [
            MetricFamily(
                "prefetch_workers_lost_total", .counter, "Workers lost: crashed, killed, or stalled past their lease.",
                Double(queue.lostWorkers)),
            MetricFamily(
                "prefetch_jobs_reclaimed_total", .counter, "Jobs of lost workers that went back to their lists.",
                Double(queue.reclaimedJobs)),
            MetricFamily(
                "prefetch_urls_reclaimed_total", .counter,
                "URLs of those jobs without an outcome: a second worker runs them, whether the first had begun or not.",
                Double(queue.reclaimedURLs)),
        ] + names(queue, all.names ?? NameReport())
    }

    private static func names(_ queue: QueueSnapshot, _ sum: NameReport) -> [MetricFamily] {
        var queries = MetricFamily(
            "prefetch_name_queries", .gauge,
            "Queries to resolvers since the start of the workers that are there, by their end; cached: look-ups without a query."
        )
        let ends = [
            ("answered", sum.answered), ("nxdomain", sum.noNames), ("failed", sum.failed),
            ("unanswered", sum.unanswered), ("cached", sum.cacheHits),
        ]
        for (name, count) in ends { queries.add(Double(count), ("end", name)) }
        return [
            queries,
            MetricFamily(
                "prefetch_waiting_names", .gauge, "Names whose addresses are being asked for.", Double(sum.waiting)),
            MetricFamily(
                "prefetch_name_window", .gauge, "Queries that workers may have in flight now.", Double(sum.window)),
            MetricFamily(
                "prefetch_workers_without_resolver", .gauge, "Workers whose resolver answers nothing.",
                Double(queue.workers.values.count { $0.report.names?.silence ?? 0 > 0 })),
        ]
    }

    /// What holds the queue's running batches back, of the newest.
    private static func limits(_ queue: QueueSnapshot) -> [MetricFamily] {
        var present = MetricFamily("prefetch_limit_info", .info, "What holds the run back; absent if none is running.")
        let limit = RunLimit(workers: queue.workers, batches: queue.batches)
        if let limit { present.add(1, ("cause", limit.cause.rawValue), ("option", LimitText.option(limit) ?? "")) }
        var workers = MetricFamily("prefetch_limited_workers", .gauge, "Workers by what holds them back.")
        var seconds = MetricFamily(
            "prefetch_limit_seconds_total", .counter,
            "Time of workers that had URLs of a batch, by what held them back.")
        for cause in LimitCause.allCases where cause != .workers {
            workers.add(
                Double(queue.workers.values.count { $0.report.limit == cause }), ("cause", cause.rawValue))
            for batch in queue.batches where batch.limits[cause] > 0 {
                seconds.add(
                    Double(batch.limits[cause]) / 1000, ("batch", batch.id), ("cause", cause.rawValue))
            }
        }
        return [present, workers, seconds]
    }

    private static func cacheFamilies(_ cache: Cache?) -> [MetricFamily] {
        var families: [MetricFamily] = []
        if let count = cache?.count {
            families.append(MetricFamily("prefetch_cache_images", .gauge, "Images in the cache.", Double(count)))
        }
        if let size = cache?.size {
            families.append(
                MetricFamily("prefetch_cache_bytes", .gauge, "Bytes that the images take of the disk.", Double(size)))
        }
        if let free = cache?.free {
            families.append(
                MetricFamily(
                    "prefetch_cache_disk_free_bytes", .gauge, "Bytes that are free on the cache's disk.", Double(free)))
        }
        return families
    }
}
