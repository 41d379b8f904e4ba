import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Bodies that are not checked yet", .timeLimit(.minutes(5)))
struct UncheckedBodiesTests {
    @Test("Those that are not free hold slots, and the thread is woken when an eighth of all is free again")
    func slots() {
        let wakes = Locked(0)
        let bodies = UncheckedBodies(wake: { wakes.withLock { $0 += 1 } })
        for _ in 0..<UncheckedBodies.free { bodies.add() }
        #expect(bodies.heldSlots == 0)
        #expect(!bodies.areSlotsFull(limit: 16, active: 15))
        #expect(bodies.areSlotsFull(limit: 16, active: 16))
        bodies.remove()
        // Transfers alone have the slots: their ends are known without a wake-up.
        #expect(wakes.withLock { $0 } == 0)
        for _ in 0..<9 { bodies.add() }
        #expect(bodies.heldSlots == 8)
        #expect(!bodies.areSlotsFull(limit: 16, active: 7))
        #expect(bodies.areSlotsFull(limit: 16, active: 8))
        bodies.remove()
        #expect(wakes.withLock { $0 } == 0)
        bodies.remove()
        #expect(wakes.withLock { $0 } == 1)
        bodies.remove()
        #expect(wakes.withLock { $0 } == 1)
        #expect(bodies.heldSlots == 5)
    }

    @Test("No transfer starts while the checks are behind, and all URLs load")
    func behind() async throws {
        let fixture = try ManagerFixture()
        let manager = try fixture.manager(downloads: { $0.maxConcurrentDownloads = 4 })
        let most = 4 + UncheckedBodies.free
        let urls = (0..<most + 20).map { fixture.image("/\($0).png").url }
        let (checks, arrived) = (Latch(), Locked(0))
        try await withThrowingTaskGroup(of: LoadedImage.self) { group in
            for url in urls {
                group.addTask {
                    var request = LoadRequest(url: url, key: url)
                    request.willStore = {
                        arrived.withLock { $0 += 1 }
                        await checks.wait()
                    }
                    return try await manager.load(request)
                }
            }
            try await until { arrived.withLock { $0 } == most }
            // Each check is a turn of the thread, in which a transfer could start.
            for _ in 0..<20 { _ = await manager.downloader.activity }
            let activity = await manager.downloader.activity
            #expect(activity.running == 0)
            #expect(activity.operations == 20)
            #expect(activity.waitingForHost == 0)
            #expect(await manager.downloader.sample().running == 4)
            #expect(fixture.origin.requestCount() == most)
            checks.open()
            for try await image in group { #expect(image.outcome == .downloaded) }
        }
        #expect(fixture.origin.requestCount() == urls.count)
        #expect(await manager.downloader.sample().running == 0)
    }

    @Test("An empty body and a picture that is refused hold no slot afterwards")
    func ends() async throws {
        let fixture = try ManagerFixture()
        let manager = try fixture.manager(downloads: { $0.maxConcurrentDownloads = 1 })
        let (url, _) = fixture.image("/a.png")
        fixture.origin.route("/bad", OriginResponse(body: Array("<html>no picture</html>".utf8)))
        fixture.origin.route("/empty", OriginResponse(body: []))
        for _ in 0..<2 * UncheckedBodies.free {
            #expect(await manager.failure(fixture.origin.url("/bad"), .retryFailed)?.code == .badImageData)
            #expect(await manager.failure(fixture.origin.url("/empty"), .retryFailed) != nil)
        }
        _ = try await manager.loadImage(with: url)
        #expect(await manager.downloader.sample().running == 0)
    }
}
