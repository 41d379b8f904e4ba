import Foundation
import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// A Redis, an origin of pictures and the built programs, for breaking one of them while the others work.
struct FaultBench: QueueSuite {
    let redis: RedisServer
    let origin: OriginServer
    let folder = TemporaryDirectory()
    let queue: PrefetchQueue

    /// * `delay`: seconds before each picture: what makes a batch last.
    init(options: [String] = [], appendOnly: Bool = true, delay: Double = 0.02) async throws {
        redis = try await RedisServer(options: options, appendOnly: appendOnly)
        origin = try .pictures(delay: delay)
        queue = PrefetchQueue(
            connection: RedisConnection(try RedisConfiguration(url: redis.url), name: "test"), waitLimit: .seconds(30))
    }

    /// One command; for looking, and for breaking things.
    @discardableResult
    func redis(_ words: String...) async throws -> RedisValue {
        try await queue.connection.command(words.map { RedisArgument($0) })
    }

    func list(_ count: Int, _ name: String = "urls") -> String { list(origin.urls(name, count), "\(name).txt") }

    /// Submits a list of `count` pictures under its own name, and returns when it is sealed.
    func submit(_ count: Int, _ name: String = "urls", _ options: [String] = []) async throws {
        if options.isEmpty {
            return try await queue.submit(list(count, name), as: name, window: "all", jobSize: 8)
        }
        let submit = try await ended(
            ["submit", list(count, name), "--name", name, "--job-size", "8", "--window", "all"] + options)
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
    }

    /// Workers with a lease of two seconds, which stay until they are told to leave.
    func workers(
        _ count: Int, _ options: [String] = [], url: String? = nil, environment: [String: String] = [:]
    ) async throws -> [ChildProcess] {
        var workers: [ChildProcess] = []
        for _ in 0..<count {
            workers.append(
                try await ChildProcess(
                    builtProduct("prefetch-worker"),
                    [
                        "--redis", url ?? redis.url, "--cache", folder.path("cache"),
                        "--allow-net", "127.0.0.0/8", "--lease", "2s", "--max-concurrent-downloads", "8",
                    ] + options, environment: environment))
        }
        return workers
    }

    /// A library of the sources for LD_PRELOAD, compiled as the package's own C is, once.
    func preloaded(_ source: String) async throws -> String {
        let source = URL(filePath: #filePath).appending(path: "../../../../\(source)").standardized
        let library = TemporaryDirectory.stateHome.path(source.lastPathComponent + ".so")
        if access(library, F_OK) == 0 { return library }
        let compiled = folder.path("preloaded.so")
        let compiler = try await ChildProcess(
            "/usr/bin/env", ["clang", "-std=c17", "-O1", "-shared", "-fPIC", "-o", compiled, source.path()])
        try #require(await compiler.wait() == .exited(0), "\(compiler.stderr)")
        try #require(rename(compiled, library) == 0)
        return library
    }

    /// Until each of them answers signals and a Redis that refuses it as a running worker does.
    func untilReady(_ workers: [ChildProcess]) async throws {
        try await until { workers.allSatisfy { ($0.stderr + $0.stdout).contains(" is ready") || !$0.isRunning } }
    }

    /// Tells workers to leave; each does so in order.
    func leave(_ workers: [ChildProcess], sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await untilReady(workers)
        for worker in workers { worker.signal(SIGTERM) }
        for worker in workers {
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)", sourceLocation: sourceLocation)
        }
    }

    /// Until so many URLs of a batch have ended.
    func untilFinished(_ count: Int, _ batch: String = "urls") async throws {
        try await until { try await queue.batches.status(of: batch).map { $0.counts.finished >= count } ?? false }
    }

    /// Until a batch is over. Every URL has ended well and once, nothing disagrees, and all workers leave in order when told.
    func expectAllThere(
        _ count: Int, _ batch: String = "urls", workers: [ChildProcess] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await until { try await queue.batches.status(of: batch)?.state == .done }
        let status = try #require(try await queue.batches.status(of: batch), sourceLocation: sourceLocation)
        #expect(status.counts.finished == count && status.total == count, sourceLocation: sourceLocation)
        #expect(
            status.counts[.downloaded] + status.counts[.hit] == count, "\(status.counts)",
            sourceLocation: sourceLocation)
        try await leave(workers, sourceLocation: sourceLocation)
        let fsck = try await done(["fsck", "--cache", folder.path("cache")], sourceLocation: sourceLocation)
        #expect(fsck.stdout.hasSuffix("everything agrees\n"), "\(fsck.stdout)", sourceLocation: sourceLocation)
        let verify = try await #require(CommandInside.run(["cache", "verify", "--cache", folder.path("cache")]))
        #expect(await verify.wait() == .exited(0), "\(verify.stdout)", sourceLocation: sourceLocation)
    }
}

/// Processor time a process has used until now, in hundredths of a second (proc(5)).
func processorTime(of pid: Int32) -> Int {
    let text = String(decoding: readFile("/proc/\(pid)/stat") ?? [], as: UTF8.self)
    let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
    return fields.count > 13 ? (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0) : 0
}

/// Seconds of the clock by which an origin notes its requests.
func clockSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

extension OriginServer {
    /// One that has the same picture for every path.
    static func pictures(delay: Double = 0) throws -> OriginServer {
        let origin = try OriginServer()
        let picture = GeneratedImage.png(seed: 3, width: 8, height: 8)
        origin.setFallback { _ in OriginResponse(body: picture, delay: delay) }
        return origin
    }

    func urls(_ prefix: String, _ count: Int) -> [String] { (0..<count).map { url("/\(prefix)/\($0).png") } }
}
