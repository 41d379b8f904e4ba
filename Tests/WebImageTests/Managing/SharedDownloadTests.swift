import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// Counts its questions, and answers all but one of them with yes.
private final class CountingDelegate: ImageManagerDelegate {
    private let count = Locked(0)
    private let refused: Int?

    /// * `refused`: number of the question that is answered with no, from 1.
    init(refusing refused: Int? = nil) { self.refused = refused }

    var asked: Int { count.withLock { $0 } }

    func imageManager(_ imageManager: ImageManager, shouldDownloadImageFor url: String) -> Bool {
        count.withLock { count in
            count += 1
            return count != refused
        }
    }
}

@Suite("Loads that wait for a download of the same image", .timeLimit(.minutes(5)))
struct SharedDownloadTests {
    private let fixture: ManagerFixture
    private let body = GeneratedImage.png(seed: 9, width: 9, height: 9)

    init() throws {
        fixture = try ManagerFixture()
    }

    /// Starts a load, and others of its URL once it is requested; lets it go on when so many questions were asked.
    private func load(
        _ manager: ImageManager, _ delegate: CountingDelegate, callers: Int, asked: Int,
        progress: @escaping @Sendable (Int, Int, Int) -> Void = { _, _, _ in }
    ) async throws -> [Result<LoadedImage, WebImageError>] {
        manager.delegate = delegate
        let url = fixture.origin.url("/a.png")
        var operations: [ImageLoadOperation] = []
        for caller in 0..<callers {
            operations.append(manager.startLoad(with: url, progress: { progress(caller, $0, $1) }))
            await fixture.origin.waitForRequests(1)
        }
        try await until { delegate.asked == asked }
        fixture.origin.release("/a.png")
        var results: [Result<LoadedImage, WebImageError>] = []
        for operation in operations {
            do throws(WebImageError) { results.append(.success(try await operation.image)) } catch {
                results.append(.failure(error))
            }
        }
        return results
    }

    @Test("Each is asked, told its progress, and has an image from no cache")
    func served() async throws {
        fixture.origin.route("/a.png", OriginResponse(body: body, fault: .stallBeforeHeader))
        let ends = Locked<[Int]>([])
        let size = body.count
        let delegate = CountingDelegate()
        let results = try await load(fixture.manager(), delegate, callers: 3, asked: 3) { caller, received, _ in
            if received == size { ends.withLock { $0.append(caller) } }
        }
        let images = try results.map { try $0.get() }
        #expect(images.allSatisfy { $0.cacheType == .none })
        #expect(images.map(\.outcome) == [.downloaded, .hit, .hit])
        #expect(ends.withLock { $0.sorted() } == [0, 1, 2])
        #expect(delegate.asked == 3 && fixture.origin.requestCount() == 1)
    }

    @Test("One that may not have the download ends without it, and the others have it")
    func refused() async throws {
        fixture.origin.route("/a.png", OriginResponse(body: body, fault: .stallBeforeHeader))
        let results = try await load(
            fixture.manager(), CountingDelegate(refusing: 2), callers: 2, asked: 2)
        #expect(try results[0].get().outcome == .downloaded)
        #expect(throws: WebImageError.self) { try results[1].get() }
        if case .failure(let error) = results[1] { #expect(error.code == .notCached) }
        #expect(fixture.origin.requestCount() == 1)
    }

    @Test("A download that failed has failed for all, and the next load asks again")
    func failed() async throws {
        fixture.origin.route(
            "/a.png",
            sequence: [OriginResponse(status: 503, fault: .stallBeforeHeader), OriginResponse(body: body)])
        let delegate = CountingDelegate()
        let manager = try fixture.manager(downloads: { $0.maxTries = 1 })
        let results = try await load(manager, delegate, callers: 2, asked: 2)
        #expect(throws: WebImageError.self) { try results[0].get() }
        #expect(throws: WebImageError.self) { try results[1].get() }
        #expect(delegate.asked == 2 && fixture.origin.requestCount() == 1)
        let image = try await manager.loadImage(with: fixture.origin.url("/a.png"), options: .retryFailed)
        #expect(image.outcome == .downloaded && image.cacheType == .none)
        #expect(delegate.asked == 3 && fixture.origin.requestCount() == 2)
    }

    @Test("A load that comes when the download has ended has its image from the cache")
    func later() async throws {
        fixture.origin.route("/a.png", OriginResponse(body: body, fault: .stallBeforeHeader))
        let manager = try fixture.manager()
        let delegate = CountingDelegate()
        _ = try await load(manager, delegate, callers: 1, asked: 1)
        let image = try await manager.loadImage(with: fixture.origin.url("/a.png"))
        #expect(image.cacheType == .memory && image.outcome == .hit && delegate.asked == 1)
    }
}
