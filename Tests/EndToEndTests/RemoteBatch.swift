import Glibc
import Prefetch
import Queue
import Redis
import TestSupport
import Testing
import WebImage

/// What has a Redis and its queue, and the commands that are given there.
protocol QueueSuite: FolderSuite {
    var redis: RedisServer { get }
    var queue: PrefetchQueue { get }
}

extension QueueSuite {
    /// `prefetch-coord` on this Redis, or on the way to it.
    func coord(_ arguments: [String], url: String? = nil) async throws -> ChildProcess {
        try await ChildProcess(builtProduct("prefetch-coord"), arguments + ["--redis", url ?? redis.url])
    }

    /// A command on this Redis that has ended, whatever its exit code; most in this process.
    func ended(_ arguments: [String]) async throws -> ChildProcess {
        try await ended(arguments + ["--redis", redis.url], of: "prefetch-coord")
    }

    /// It has ended, with this exit code.
    @discardableResult
    func done(
        _ arguments: [String], _ code: Int32 = 0, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> ChildProcess {
        let child = try await ended(arguments)
        #expect(
            await child.wait() == .exited(code), "\(arguments): \(child.stdout)\(child.stderr)",
            sourceLocation: sourceLocation)
        return child
    }
}

/// A Redis, a list and the built programs; URLs end when the test says so, or workers are started.
struct RemoteBatch: QueueSuite {
    let redis: RedisServer
    let folder = TemporaryDirectory()
    let queue: PrefetchQueue

    init() async throws {
        try self.init(redis: await RedisServer(appendOnly: true))
    }

    init(redis: RedisServer) throws {
        self.redis = redis
        queue = PrefetchQueue(connection: RedisConnection(try RedisConfiguration(url: redis.url), name: "test"))
    }

    /// Puts a list into the queue as `submit` does without an option, and returns when it is sealed.
    func submit(_ urls: [String], as name: String) async throws {
        try await queue.submit(list(urls, "\(name).txt"), as: name)
    }

    /// Submits a list under a name and returns when it is sealed.
    @discardableResult
    func submit(_ urls: [String], as name: String, _ options: [String]) async throws -> ChildProcess {
        let submit = try await ended(["submit", list(urls, "\(name).txt"), "--name", name] + options)
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
        return submit
    }

    /// Bounds the details that a batch keeps, before a worker has any.
    func keepDetails(_ count: Int, of batch: String) async throws {
        _ = try await queue.connection.command([
            "HSET", RedisArgument(queue.keys.batch(batch)), "details", RedisArgument(count),
        ])
    }

    /// The same as a word of a shell.
    func coordWords(_ arguments: String) -> String {
        "'\(builtProduct("prefetch-coord"))' \(arguments) --redis '\(redis.url)'"
    }

    func shell(_ command: String, environment: [String: String] = [:]) async throws -> ChildProcess {
        try await ChildProcess(
            "/usr/bin/env", ["bash", "-c", command], environment: environment)
    }

    /// * `isBurst`: they leave when no batch runs.
    func workers(_ count: Int, _ options: [String] = [], isBurst: Bool = true) async throws -> [ChildProcess] {
        var workers: [ChildProcess] = []
        for _ in 0..<count {
            workers.append(
                try await ChildProcess(
                    builtProduct("prefetch-worker"),
                    [
                        "--quiet", "--redis", redis.url, "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8",
                    ] + (isBurst ? ["--burst"] : []) + options))
        }
        return workers
    }

    /// Ends one URL, as a worker's report does.
    func settle(_ batch: String, _ index: Int, _ url: String, _ outcome: PrefetchOutcome = .downloaded) async throws {
        var item = SettledEntry(position: 0, outcome: outcome)
        if outcome.isSkipped {
            item.failure = FailureDetail(line: index + 1, url: url, outcome: outcome, httpStatus: 404, detail: "no")
        }
        let identity = try await queue.batches.status(of: batch)?.identity ?? BatchIdentity(id: batch, nonce: "")
        let report = QueueReports.Report(
            job: "\(batch):\(index):1", batch: identity, base: index, count: 1, isFinal: true, settled: [item],
            keepDetails: 1000)
        _ = try await queue.reports.send([report], worker: "test")
    }
}

extension PrefetchQueue {
    /// Makes a batch of the list at a path, and feeds it to its end.
    func submit(_ path: String, as name: String, window: String = "auto", jobSize: Int? = nil) async throws {
        var batch = NewBatch(list: try URLList(path: path))
        batch.settings.turn.name = name
        let opened = try await batch.open(in: self)
        let feeder = ListFeeder(queue: self, list: batch.list, batch: opened.id, window: window, jobSize: jobSize)
        #expect(try await feeder.feed() == .sealed)
    }
}
