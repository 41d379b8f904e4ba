import Redis
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("URLs that a worker's own rules refuse", .timeLimit(.minutes(5)))
struct RefusedTests {
    private func join(_ f: QueueFixture, _ workers: (name: String, rules: String)...) async throws {
        for (name, rules) in workers {
            #expect(try await f.queue.workers.join(worker: name, lease: 60_000, about: [("rules", rules)]))
        }
    }

    private func refuse(
        _ f: QueueFixture, _ worker: String, _ claim: QueueJobs.Claim, _ rules: String, _ positions: Int...
    ) async throws -> Set<Int> {
        try await f.queue.jobs.refused(worker: worker, claim: claim.name, rules: rules, positions: positions)
    }

    private func result(
        _ f: QueueFixture, _ worker: String, _ sequence: Int, count: Int = 1
    ) async throws -> QueueJobs.ClaimResult {
        try await f.queue.jobs.claim(worker: worker, sequence: sequence, count: count, lease: 60_000)
    }

    /// Reports what has ended of a job, and gives back the rest.
    private func leave(
        _ f: QueueFixture, _ worker: String, _ claim: QueueJobs.Claim, _ outcomes: [PrefetchOutcome?]
    ) async throws {
        let report = QueueFixture.report(claim.job, outcomes, isFinal: !outcomes.contains(nil))
        _ = try await f.queue.reports.send([report], worker: worker)
        try await f.queue.jobs.release(worker: worker, jobs: [claim.name], leaving: false)
    }

    @Test("Where all have the same rules they end at once; where others differ, when those have refused them too")
    func ends() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [4])
        try await join(f, ("a", "x --allow-net 10.0.0.0/8"), ("b", "x --allow-net 10.0.0.0/8"))
        let first = try await f.claim("a", 1)[0]
        #expect(try await refuse(f, "a", first, "x", 1, 3) == [1, 3])
        // Another, with other rules.
        try await join(f, ("c", "y"))
        #expect(try await refuse(f, "a", first, "x", 1, 3) == [])
        #expect(try await refuse(f, "a", first, "x", 1, 3) == [], "again")
        let field = "\(first.job.name)^"
        #expect(
            Set(try await f.redis("HGET", f.keys.tries("b"), field).string?.split(separator: "\n") ?? [])
                == ["1 x", "3 x"])
        #expect(try await f.findings("b") == [])
        try await leave(f, "a", first, [.downloaded, nil, .downloaded, nil])
        // The same rules leave it to the other.
        #expect(try await result(f, "b", 1) == .left)
        #expect(try await result(f, "a", 2) == .left)
        let second = try await f.claim("c", 1)[0]
        #expect(second.job == first.job && second.outcomes == [1, 0, 1, 0] && second.deliveries == 0)
        #expect(try await refuse(f, "b", second, "x", 1) == [], "it has no such claim")
        #expect(try await refuse(f, "c", second, "y", 3) == [3])
        try await leave(f, "c", second, [nil, .downloaded, nil, .refused])
        let status = try #require(try await f.queue.batches.status(of: "b"))
        #expect(status.state == .done && status.counts[.downloaded] == 3 && status.counts[.refused] == 1)
        #expect(try await f.redis("EXISTS", f.keys.tries("b")).int == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("Paused, troubled, held and lost workers are not waited for, and who is the last takes what it had left")
    func absent() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2])
        try await join(f, ("a", "x"), ("b", "p"), ("c", "t"), ("d", "h"), ("e", "l"), ("f", "y"))
        try await f.redis("HSET", f.keys.worker("b"), "paused", "1")
        try await f.redis("HSET", f.keys.worker("c"), "trouble", "disk full")
        try await f.redis("HSET", f.keys.worker("d"), "held", "disk")
        try await f.expire("e")
        let claim = try await f.claim("a", 1)[0]
        #expect(try await refuse(f, "a", claim, "x", 0) == [])
        try await leave(f, "a", claim, [nil, .downloaded])
        #expect(try await result(f, "a", 2) == .left)
        try await f.queue.jobs.release(worker: "f", leaving: true)
        let again = try await f.claim("a", 3)[0]
        #expect(try await refuse(f, "a", again, "x", 0) == [0])
        // A format without a library, met meanwhile: other rules than before.
        #expect(try await refuse(f, "a", again, "z no library for avif", 0) == [0])
        #expect(try await f.redis("HGET", f.keys.worker("a"), "rules").string == "z no library for avif")
    }

    @Test("What a worker leaves to others keeps no other job from it, of whatever batch and priority")
    func others() async throws {
        let f = try await QueueFixture()
        try await f.fill("high", sizes: Array(repeating: 1, count: 30), fields: [("priority", "high")])
        try await f.fill("normal", sizes: [1, 1])
        try await join(f, ("a", "x"), ("b", "y"))
        var sequence = 0
        for _ in 0..<30 {
            sequence += 1
            let claim = try #require(try await f.claim("a", sequence).first)
            guard claim.job.batch == "high" else {
                try await leave(f, "a", claim, [.downloaded])
                continue
            }
            #expect(try await refuse(f, "a", claim, "x", 0) == [])
            try await leave(f, "a", claim, [nil])
        }
        // Some are refused, the rest is claimed: nothing is left after that but what is refused.
        while case .claimed(let claims) = try await result(f, "a", sequence + 1, count: 8), !claims.isEmpty {
            sequence += 1
            for claim in claims {
                #expect(claim.outcomes == [0])
                if claim.job.batch == "high" { _ = try await refuse(f, "a", claim, "x", 0) }
                try await leave(f, "a", claim, [claim.job.batch == "high" ? nil : .downloaded])
            }
        }
        let normal = try #require(try await f.queue.batches.status(of: "normal"))
        #expect(normal.state == .done && normal.counts[.downloaded] == 2)
        #expect(try await result(f, "a", sequence + 1) == .left)
        #expect(try await f.findings("high") == [])
        // The other gets each of them once.
        var bases: Set<Int> = []
        for number in 1...30 {
            let claim = try #require(try await f.claim("b", number).first)
            bases.insert(claim.job.base)
            try await leave(f, "b", claim, [.downloaded])
        }
        #expect(bases == Set(0..<30))
        #expect(try await f.queue.batches.status(of: "high")?.state == .done)
    }

    @Test("Rules are those of options, in any order; who asks in another way or with secrets has answers of its own")
    func names() throws {
        func rules(_ change: (inout ImageDownloader.Configuration) -> Void = { _ in }) -> WorkerRules {
            var downloads = ImageDownloader.Configuration()
            change(&downloads)
            let rules = WorkerRules()
            rules.learn(downloads, ImageCoder(), maxImageBytes: PrefetchWorker.Configuration().maxImageBytes)
            return rules
        }
        let blocks = try ["10.0.0.0/8", "127.0.0.0/8"].map { try #require(CIDR($0)) }
        let usual = rules()
        #expect(usual.record.hasSuffix(" ") && usual.record.utf8.count == 13, "\(usual.record)")
        let open = rules { $0.addressPolicy.allow = blocks }
        #expect(open.record.hasSuffix(" --allow-net 10.0.0.0/8,127.0.0.0/8"), "\(open.record)")
        #expect(open.record == rules { $0.addressPolicy.allow = blocks.reversed() }.record)
        let filters: [any ImageURLFilter] = [HostFilter(denied: ["b", "a"]), try PatternFilter("x$")]
        #expect(rules { $0.workerFilters = filters }.record.hasSuffix(" --deny-host b,a --url-filter x$"))
        let proxy = rules { $0.proxy = "http://u:secret@p:3128" }
        #expect(proxy.record.hasSuffix("--proxy http://***:***@p:3128") || !proxy.record.contains("secret"))
        // The same name for the same question, and others otherwise.
        let name = try #require(usual.name(of: "q"))
        #expect(rules().name(of: "q") == name && usual.name(of: "r") != name && open.name(of: "q") != name)
        #expect(rules { $0.setValue("x", forHTTPHeaderField: "Referer") }.name(of: "q") != name)
        #expect(rules { $0.dnsServers = ["127.0.0.1"] }.name(of: "q") != name)
        #expect(proxy.name(of: "q") == nil)
        #expect(rules { $0.credentials = [Credential(bearer: "t", hosts: [])] }.name(of: "q") == nil)
        #expect(rules { $0.setValue("Basic x", forHTTPHeaderField: "AUTHORIZATION") }.name(of: "q") == nil)
        #expect(rules { $0.requestModifier = { $0 } }.name(of: "q") == nil)
        // What it lacks is learnt.
        #expect(usual.refuse(WebImageError(.refused, "", reason: .closedNetwork)))
        #expect(!usual.refuse(WebImageError(.refused, "", reason: .robots)))
        #expect(!usual.refuse(WebImageError(.invalidDownloadStatusCode, "", httpStatus: 404)))
        var heic = WebImageError(.unsupportedFormat, "")
        heic.unverifiedFormat = .heic
        #expect(!usual.refuse(heic), "no worker verifies it")
    }
}
