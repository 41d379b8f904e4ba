import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Transfers to one address", .timeLimit(.minutes(5)))
struct AddressSlotsTests {
    private struct Item: Hashable {
        var host: Int
        /// The last number of its address.
        var address: Int?
        var number: Int
        /// Of the transfers to its address.
        var limit: Int

        var name: String { "h\(host)" }
    }

    /// What runs and waits at an address.
    private struct Load {
        var running = 0
        /// Of what runs, by its limit.
        var alike = [Int](repeating: 0, count: 5)
        /// The greatest limit of all.
        var most = 0
    }

    @Test(
        "However hosts share addresses, no address has more than its limit, and all are served in the end",
        arguments: [
            DownloadExecutionOrder.fifo, .lifo,
        ])
    func simulation(order: DownloadExecutionOrder) {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("AddressSlotsTests seed \(seed)")
        var state = seed
        func random(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(count))
        }
        for _ in 0..<20 {
            var queue = DownloadQueue<Item>(order: order)
            let slots = AddressSlots()
            let (hosts, addresses, limits) = (
                1 + random(60), 1 + random(5), (0..<1 + random(2)).map { _ in 1 + random(4) }
            )
            var left = 200
            var waiting = Set<Item>()
            var limited: [Item: LimitedAddress] = [:]
            var places: [Item: DownloadQueue<Item>.Place] = [:]
            var running: [Item] = []
            func next() -> Item? {
                while true {
                    if let item = queue.next(where: { slots.mayBegin(limited[$0], of: $0.name, shares: nil, now: 0) }) {
                        if let address = limited[item] { slots.begin(address) }
                        return item
                    }
                    guard let host = slots.takeHost(shares: nil, now: 0) else { return nil }
                    queue.unblock(host: host)
                }
            }
            while left > 0 || !waiting.isEmpty || !running.isEmpty {
                if left > 0, random(3) > 0 {
                    left -= 1
                    let host = random(hosts)
                    // A group of hosts has several addresses, some are not known.
                    let address = host % 7 == 0 ? random(addresses) : host % addresses
                    let item = Item(
                        host: host, address: host % 5 == 4 ? nil : address, number: left,
                        limit: limits[random(limits.count)])
                    waiting.insert(item)
                    if let address = item.address {
                        let endpoint = Endpoint(IPAddress("192.0.2.\(address)")!, port: 80)
                        limited[item] = slots.enqueue(endpoint, limit: item.limit)
                    }
                    places[item] = queue.enqueue(
                        item, host: item.name, priority: 1,
                        limits: HostLimits(transfers: 2, rate: Double(1 + random(2))))
                    if slots.mayBegin(limited[item], of: item.name, shares: nil, now: 0) {
                        queue.unblock(host: item.name)
                    }
                } else if !running.isEmpty, random(2) > 0 || left == 0 {
                    let item = running.remove(at: random(running.count))
                    queue.release(places[item]!)
                    if let address = limited[item] { slots.end(address, shares: nil, now: 0) }
                } else if random(4) == 0, let item = waiting.randomElement() {
                    waiting.remove(item)
                    queue.remove(places[item]!)
                    if let address = limited[item] { slots.leave(address, shares: nil, now: 0) }
                }
                while running.count < 16, let item = next() {
                    #expect(waiting.remove(item) != nil)
                    running.append(item)
                }
                var loads = Array(repeating: Load(), count: addresses)
                var runningOf = [Int](repeating: 0, count: hosts)
                for item in running {
                    runningOf[item.host] += 1
                    guard let address = item.address else { continue }
                    loads[address].running += 1
                    loads[address].alike[item.limit] += 1
                    loads[address].most = max(loads[address].most, item.limit)
                }
                for load in loads {
                    #expect(load.alike.indices.allSatisfy { load.alike[$0] <= $0 } && load.running <= limits.max()!)
                }
                for item in waiting {
                    if let address = item.address { loads[address].most = max(loads[address].most, item.limit) }
                }
                // Whatever may start has started.
                if running.count < 16 {
                    let isStuck = waiting.contains { item in
                        guard runningOf[item.host] < 2 else { return false }
                        guard let load = item.address.map({ loads[$0] }) else { return true }
                        return load.running < load.most && load.alike[item.limit] < item.limit
                    }
                    #expect(!isStuck)
                    guard !isStuck else { return }
                }
            }
            #expect(slots.isEmpty)
        }
    }

    @Test("An address has its own limit, and what waits for it says so; another port is another address")
    func limit() async throws {
        let (server, other) = (try OriginServer(), try OriginServer())
        for server in [server, other] {
            server.setFallback { _ in OriginResponse(body: [1], fault: .stallBeforeHeader) }
        }
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 64
            $0.maxConnectionsPerAddress = 3
        }
        let urls = (0..<16).map { server.url("/\($0)") }
        let tasks = (urls + [other.url("/")]).map { url in Task { await downloader.failure(url) } }
        await server.waitForRequests(3)
        await other.waitForRequests(1)
        let reason = "other transfers to 127.0.0.1:\(server.port)"
        try await until { await downloader.states(of: Set(urls)).values.count { $0.reason == reason } == 13 }
        #expect(server.requestCount() == 3)
        await downloader.cancelAllDownloads()
        for task in tasks { _ = await task.value }
    }

    @Test("Opened addresses have no limit where that was not asked for, names always have one")
    func opened() throws {
        var configuration = ImageDownloader.Configuration()
        configuration.maxConnectionsPerAddress = 5
        configuration.addressPolicy = AddressPolicy(allow: [try #require(CIDR("127.0.0.0/8"))])
        func limit(_ url: String) throws -> Int? {
            let site = SiteBook(configuration.addressPolicy).site(of: try RequestURL(url))
            return RequestProfile(configuration).addressLimit(of: site)
        }
        #expect(try limit("http://127.0.0.1:8080/") == 5)
        configuration.limitsTransfersToOpenedAddresses = false
        #expect(try limit("http://127.0.0.1:8080/") == nil)
        #expect(try limit("http://h:8080/") == 5)
        #expect(try limit("http://192.0.2.1/") == 5)
        let texts = [
            ("2001:db8::1", "[2001:db8::1]:443"), ("::ffff:192.0.2.1", "192.0.2.1:443"), ("192.0.2.1", "192.0.2.1:443"),
        ]
        for (text, key) in texts {
            let endpoint = AddressSlots.endpoint(of: try #require(IPAddress(text)), port: 443)
            #expect(endpoint.description == key)
        }
    }
}
