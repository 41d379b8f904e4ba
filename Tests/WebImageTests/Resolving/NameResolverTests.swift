import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Names of hosts, asked of a resolver of the test's own", .timeLimit(.minutes(5)))
struct NameResolverTests {
    /// An origin that answers every path, and a downloader that asks `names`.
    private func downloader(
        _ names: OriginResolver, _ change: (inout ImageDownloader.Configuration) -> Void = { _ in }
    ) throws -> ImageDownloader {
        try makeDownloader {
            $0.dnsServers = [names.place]
            $0.ipVersion = .v4
            $0.hostsFile = "/dev/null"
            change(&$0)
        }
    }

    private func origin() throws -> OriginServer {
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: [1]) }
        return origin
    }

    @Test("One query for a name however many ask, and none while its answer is kept")
    func coalescing() async throws {
        let origin = try origin()
        let names = try OriginResolver { .addresses(["127.0.0.1"], to: $0, ttl: 0) }
        let downloader = try downloader(names)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask { _ = try await downloader.download("http://one.test:\(origin.port)/\(number)") }
            }
            try await group.waitForAll()
        }
        // Its TTL is 0; another port is the same name.
        _ = try await downloader.download("http://ONE.test:\(origin.port)/again")
        #expect(names.counts.queries == 1 && names.queryCount("one.test") == 1)
        let figures = await downloader.activity.names
        #expect(figures.queries == 1 && figures.answered == 1 && figures.waiting == 0 && figures.silence == nil)
        #expect(figures.cacheHits >= 1)
        #expect(origin.requestCount() == 51)
    }

    @Test("IPv6 alone is asked for on request")
    func families() async throws {
        let origin = try origin()
        let names = try OriginResolver { .addresses(["127.0.0.1", "::1"], to: $0) }
        let downloader = try downloader(names) { $0.ipVersion = .v6 }
        let error = await downloader.failure("http://six.test:\(origin.port)/")
        // Nothing listens there, or the machine has no IPv6: the address was tried all the same.
        #expect(error?.code != .cannotFindHost)
        #expect(names.queryCount("six.test", type: NameQuestion.v6) == 1)
        #expect(names.queryCount("six.test", type: NameQuestion.v4) == 0)
    }

    @Test("A name that does not exist ends at once, without a retry, and is not asked for again")
    func noName() async throws {
        let names = try OriginResolver { question in
            question.name == "none.test" ? NameAnswer(.noName) : NameAnswer()
        }
        let downloader = try downloader(names)
        for _ in 0..<2 {
            let error = try #require(await downloader.failure("http://none.test/a.jpg"))
            #expect(error.code == .cannotFindHost && error.message == "no such name")
            #expect(!error.isTransient && error.tries == 0 && error.outcome == .dns)
        }
        let error = await downloader.failure("http://bare.test/a.jpg")
        #expect(error?.code == .cannotFindHost && error?.message == "the name has no address")
        #expect(names.counts.queries == 2)
        #expect(await downloader.activity.names.noNames == 1)
    }

    @Test("No resolver is asked for .invalid, localhost, impossible names, and names of the hosts file")
    func special() async throws {
        let origin = try origin()
        let names = try OriginResolver { _ in .silence }
        let folder = TemporaryDirectory()
        folder.write(Array("# a comment\n127.0.0.1 printer Printer.test # another\n::1 six\n".utf8), to: "hosts")
        let downloader = try downloader(names) { $0.hostsFile = folder.path("hosts") }
        for host in ["no.such.host.invalid", "a..b", String(repeating: "x", count: 64) + ".test"] {
            #expect(await downloader.failure("http://\(host):\(origin.port)/")?.message == "no such name", "\(host)")
        }
        for host in ["localhost", "images.localhost", "localhost.", "printer", "PRINTER.test."] {
            #expect(await downloader.failure("http://\(host):\(origin.port)/") == nil, "\(host)")
        }
        #expect(names.counts.queries == 0)
    }

    @Test(
        "SERVFAIL and REFUSED are asked again, and end a name only after the host's wait limit",
        arguments: [NameAnswer.Code.serverFailure, .refused])
    func failing(code: NameAnswer.Code) async throws {
        let origin = try origin()
        let names = try OriginResolver { question in
            switch question.name {
            case "heals.test" where question.number == 1: NameAnswer(code)
            case "fails.test": NameAnswer(code)
            default: .addresses(["127.0.0.1"], to: question)
            }
        }
        let downloader = try downloader(names) { $0.hosts.waitLimit = 2 }
        async let healed = downloader.failure("http://heals.test:\(origin.port)/")
        async let failed = downloader.failure("http://fails.test:\(origin.port)/")
        #expect(await healed == nil)
        let error = try #require(await failed)
        #expect(error.code == .cannotFindHost && error.tries == 0)
        #expect(error.message.hasPrefix("the resolver fails for this name: "), "\(error.message)")
        #expect(names.queryCount("heals.test") == 2)
        // At 0, 1 and 3 s.
        #expect(names.queryCount("fails.test") == 3)
    }

    @Test("A name without an answer ends if others are answered, even if it is the last one")
    func unanswered() async throws {
        let origin = try origin()
        let names = try OriginResolver { question in
            question.name == "dead.test" ? .silence : .addresses(["127.0.0.1"], to: question)
        }
        let downloader = try downloader(names) { $0.hosts.waitLimit = 1 }
        #expect(await downloader.failure("http://good.test:\(origin.port)/") == nil)
        let error = await downloader.failure("http://dead.test:\(origin.port)/")
        #expect(error?.code == .cannotFindHost)
        #expect(error?.message == "the resolver answers for other names, but not for this one")
        #expect(names.queryCount("dead.test") == 4)
        #expect(await downloader.activity.names.silence == nil)
    }

    @Test(
        "A resolver that is silent ends nothing: names wait without a slot, known ones go on, all end well when it is back"
    )
    func silent() async throws {
        let origin = try origin()
        let names = try OriginResolver { .addresses(["127.0.0.1"], to: $0) }
        let downloader = try downloader(names) {
            $0.maxConcurrentDownloads = 1
            $0.hosts.waitLimit = 0.5
        }
        #expect(await downloader.failure("http://known.test:\(origin.port)/") == nil)
        names.setZone { _ in .silence }
        let waiting = (0..<20).map { number in
            Task { await downloader.failure("http://host\(number).test:\(origin.port)/") }
        }
        try await until { await downloader.activity.names.silence != nil }
        #expect(await downloader.activity.names.waiting == 20)
        #expect(await downloader.failure("http://known.test:\(origin.port)/more") == nil)
        #expect(await downloader.failure(origin.url("/literal")) == nil)
        #expect(await downloader.states(of: ["http://host3.test:\(origin.port)/"]).values.first?.reason == "its name")
        names.setZone { .addresses(["127.0.0.1"], to: $0) }
        for task in waiting { #expect(await task.value == nil) }
        #expect(await downloader.activity.names.silence == nil)
    }

    @Test("Silence of the resolver does not use up a name's timeout")
    func timeoutOfSilence() async throws {
        let origin = try origin()
        let names = try OriginResolver { .addresses(["127.0.0.1"], to: $0) }
        let downloader = try downloader(names) { $0.hosts.waitLimit = 2 }
        #expect(await downloader.failure("http://known.test:\(origin.port)/") == nil)
        names.setZone { $0.name == "fails.test" && $0.number == 1 ? NameAnswer(.serverFailure) : .silence }
        let waiting = Task { await downloader.failure("http://fails.test:\(origin.port)/") }
        try await until { await downloader.activity.names.silence != nil }
        let failing = Locked(true)
        names.setZone { question in
            guard question.name == "fails.test" else { return .addresses(["127.0.0.1"], to: question) }
            // Once more, and then it is well.
            let fails = failing.withLock { failing in
                defer { failing = false }
                return failing
            }
            return fails ? NameAnswer(.serverFailure) : .addresses(["127.0.0.1"], to: question)
        }
        #expect(await waiting.value == nil)
        #expect(!failing.withLock { $0 })
    }

    /// resolv.conf(5) has no ports.
    private static let mayListen = (try? OriginResolver(address: "127.77.0.3", port: 53) { _ in .silence }) != nil

    @Test("While the resolver is silent, a changed resolv.conf(5) counts", .enabled(if: mayListen, "port 53 is root's"))
    func changedFile() async throws {
        let origin = try origin()
        let old = try OriginResolver(address: "127.77.0.1", port: 53) { _ in .silence }
        let new = try OriginResolver(address: "127.77.0.2", port: 53) { .addresses(["127.0.0.1"], to: $0) }
        let folder = TemporaryDirectory()
        folder.write(Array("nameserver \(old.address)\n".utf8), to: "resolv.conf")
        let downloader = try downloader(old) {
            $0.dnsServers = []
            $0.resolverFile = folder.path("resolv.conf")
        }
        let waiting = Task { await downloader.failure("http://one.test:\(origin.port)/") }
        try await until { old.queryCount("one.test") > 0 }
        folder.write(Array("# moved\nnameserver \(new.address)\n".utf8), to: "resolv.conf")
        #expect(await waiting.value == nil)
        #expect(new.queryCount("one.test") == 1)
        #expect(await downloader.activity.names.silence == nil)
    }

    @Test("An answer and a refusal that have lapsed are asked for again, and what the resolver says then counts")
    func lapsed() throws {
        let names = try OriginResolver {
            $0.name == "none.test" ? NameAnswer(.noName) : .addresses(["192.0.2.1"], to: $0, ttl: 90)
        }
        let epoll = try #require(Epoll())
        let sockets = NameSockets(epoll)
        let resolver = NameResolver(
            NameResolver.Settings(servers: [names.place], families: [.v4], hostsFile: "/dev/null"), sockets: sockets)
        /// What is said of a name at a time; nil: the resolver is asked.
        func known(_ name: String, at time: Double) -> String? {
            switch resolver.lookUp(resolver.name(name), now: time) {
            case .known(let address): address.description
            case .refused(let error): error.message
            case .waits: nil
            }
        }
        /// Turns until the resolver has answered.
        func answer(at time: Double) {
            while resolver.turn(now: time).isEmpty {
                for index in 0..<epoll.wait(milliseconds: 1000) {
                    if let event = epoll.event(index) { #expect(sockets.take(event)) }
                }
            }
        }
        for name in ["one.test", "none.test"] {
            #expect(known(name, at: 0) == nil)
            answer(at: 0)
        }
        #expect(known("one.test", at: 89) == "192.0.2.1" && known("none.test", at: 59) == "no such name")
        names.setZone { .addresses([$0.name == "none.test" ? "192.0.2.3" : "192.0.2.2"], to: $0) }
        #expect(known("one.test", at: 89.9) == "192.0.2.1" && names.counts.queries == 2)
        for (name, address) in [("one.test", "192.0.2.2"), ("none.test", "192.0.2.3")] {
            #expect(known(name, at: 91) == nil)
            answer(at: 91)
            #expect(known(name, at: 92) == address)
        }
        #expect(names.counts.queries == 4)
    }

    @Test("A download that is cancelled while its name is asked for is gone")
    func cancelled() async throws {
        let names = try OriginResolver { _ in .silence }
        let downloader = try downloader(names)
        let task = Task { await downloader.failure("http://slow.test/") }
        await names.waitForQueries(1)
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        #expect(await downloader.currentDownloadCount == 0)
        #expect(await downloader.activity.names.waiting == 0)
    }

    @Test("A private address is refused before a connection; of several the permitted ones are tried")
    func privateAddresses() async throws {
        let origin = try OriginServer(address: "0.0.0.0")
        origin.setFallback { _ in OriginResponse(body: [1]) }
        let names = try OriginResolver { question in
            .addresses(question.name == "mixed.test" ? ["10.0.0.1", "127.0.0.1"] : ["127.0.0.9"], to: question)
        }
        let downloader = try downloader(names) { $0.addressPolicy.allow = ["127.0.0.1"].compactMap { CIDR($0) } }
        let error = try #require(await downloader.failure("http://rebound.test:\(origin.port)/secret"))
        #expect(error.code == .refused && error.message == "127.0.0.9 is a loopback address")
        #expect(error.refusedAddress == "127.0.0.9:\(origin.port)")
        #expect(origin.connectionCount == 0)
        let image = try await downloader.download("http://mixed.test:\(origin.port)/")
        #expect(image.remoteAddress == "127.0.0.1")
    }

    @Test("Redirects and robots.txt pass through the same names")
    func hops() async throws {
        let origin = try origin()
        let names = try OriginResolver { question in
            question.name == "gone.test" ? NameAnswer(.noName) : .addresses(["127.0.0.1"], to: question)
        }
        origin.route("/there", .redirect(to: "http://second.test:\(origin.port)/image"))
        origin.route("/nowhere", .redirect(to: "http://gone.test:\(origin.port)/image"))
        origin.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nDisallow: /no\n".utf8)))
        let downloader = try downloader(names) { $0.asksRobots = true }
        #expect(await downloader.failure("http://first.test:\(origin.port)/there") == nil)
        let error = await downloader.failure("http://first.test:\(origin.port)/nowhere")
        #expect(error?.code == .refused || error?.message == "no such name", "\(error?.message ?? "")")
        #expect(names.queryCount("first.test") == 1 && names.queryCount("second.test") == 1)
    }

    @Test("An international name is asked for in ASCII")
    func international() async throws {
        let origin = try origin()
        let names = try OriginResolver { .addresses(["127.0.0.1"], to: $0) }
        let downloader = try downloader(names)
        #expect(await downloader.failure("http://bücher.test:\(origin.port)/") == nil)
        #expect(names.queryCount("xn--bcher-kva.test") == 1)
    }

    @Test("To hosts that are seen once, 64 connections are kept and 4 for each transfer, and none if told so")
    func connections() async throws {
        let origin = try origin()
        let names = try OriginResolver { .addresses(["127.0.0.1"], to: $0) }
        let downloader = try downloader(names) {
            ($0.maxConcurrentDownloads, $0.maxIdleConnections) = (3, 100)
        }
        func fetch(_ hosts: Range<Int>) async {
            for number in hosts {
                #expect(await downloader.failure("http://host\(number).test:\(origin.port)/") == nil)
            }
        }
        await fetch(0..<100)
        // One more if the last transfer has just ended.
        try await until { origin.openConnectionCount <= 77 }
        let connections = await downloader.sample().connections
        #expect((76...77).contains(connections), "\(connections)")
        // All wait for one host: each but the last leaves its connection to the next.
        await downloader.setSuspended(true)
        try await withThrowingTaskGroup(of: WebImageError?.self) { group in
            for number in 0..<40 {
                group.addTask { await downloader.failure("http://busy.test:\(origin.port)/\(number)") }
            }
            try await until { await downloader.currentDownloadCount == 40 }
            await downloader.setSuspended(false)
            for try await error in group { #expect(error == nil) }
        }
        let busy = origin.requests.filter { $0.header("Host")?.hasPrefix("busy") == true }
        #expect(busy.count == 40 && Set(busy.map(\.connection)).count <= 8)
        await downloader.setConnections(keepsIdle: false, excusesConnects: false)
        // curl closes the old ones once they are a second old.
        try await until {
            await fetch(100..<101)
            return origin.openConnectionCount <= 3
        }
    }

    @Test("Names that wait ask for more downloads: as many as are queried, and all once the resolver is slow")
    func waiting() async throws {
        let names = try OriginResolver { _ in .silence }
        let downloader = try downloader(names)
        let downloads = (0..<100).map { number in Task { await downloader.failure("http://host\(number).test/") } }
        try await until { await downloader.activity.names.waiting == 100 }
        let activity = await downloader.activity
        #expect(activity.running == 0 && activity.operations == 100)
        // Of the first second, if this has not taken one.
        #expect([activity.names.window, 100].contains(activity.waitingForName) && activity.names.window < 50)
        try await until { await downloader.activity.waitingForName == 100 }
        for download in downloads { download.cancel() }
        for download in downloads { #expect(await download.value?.code == .cancelled) }
        #expect(await downloader.activity.waitingForName == 0)
    }

    @Test("An answer that comes after the repetition of its query counts, with one resolver and with two")
    func lateAnswers() async throws {
        let origin = try origin()
        let slow = try OriginResolver { question in
            var answer = NameAnswer.addresses(["127.0.0.1"], to: question)
            answer.delay = 3
            return answer
        }
        let dead = try OriginResolver { _ in .silence }
        for servers in [[slow.place], [slow.place, dead.place]] {
            let downloader = try downloader(slow) { $0.dnsServers = servers }
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        #expect(await downloader.failure("http://host\(number).test:\(origin.port)/") == nil)
                    }
                }
            }
            #expect(await downloader.activity.names.silence == nil)
        }
    }

    @Test("Of two resolvers the second answers when the first does not")
    func second() async throws {
        let origin = try origin()
        let dead = try OriginResolver { _ in .silence }
        let names = try OriginResolver { .addresses(["127.0.0.1"], to: $0) }
        let downloader = try downloader(names) { $0.dnsServers = [dead.place, names.place] }
        #expect(await downloader.failure("http://one.test:\(origin.port)/") == nil)
        #expect(await downloader.failure("http://two.test:\(origin.port)/") == nil)
        #expect(dead.counts.queries == 1 && names.counts.queries == 2)
    }
}
