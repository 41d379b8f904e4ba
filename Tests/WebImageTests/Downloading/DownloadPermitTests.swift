import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Permits that are taken back", .timeLimit(.minutes(5)))
struct DownloadPermitTests {
    private func end(
        _ downloader: ImageDownloader, _ url: String, _ permit: DownloadPermit?
    ) async -> Result<Int, WebImageError> {
        do throws(WebImageError) {
            return .success(try await downloader.download(url, permit: permit).statusCode)
        } catch {
            return .failure(error)
        }
    }

    @Test("A transfer goes on to its end; what waits for a slot, for its next try or a next hop ends as cancelled")
    func revoked() async throws {
        let origin = try OriginServer()
        let (slow, moved, busy) = (origin.url("/slow"), origin.url("/moved"), origin.url("/busy"))
        origin.route("/slow", OriginResponse(body: [1, 2, 3], fault: .stallBeforeHeader))
        var redirect = OriginResponse.redirect(to: "/target")
        redirect.fault = .stallBeforeHeader
        origin.route("/moved", redirect)
        origin.route("/busy", .busy(retryAfter: 20))
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 3 }
        let (permit, other) = (DownloadPermit(), DownloadPermit())
        async let first = end(downloader, slow, permit)
        async let second = end(downloader, moved, permit)
        async let third = end(downloader, busy, permit)
        await origin.waitForRequests(1, to: "/busy")
        try await until { await downloader.activity.retrying != 0 }
        let filler = OriginResponse(body: [9], fault: .stallBeforeHeader)
        origin.route("/filler", filler)
        async let fourth = end(downloader, origin.url("/filler"), other)
        await origin.waitForRequests(1, to: "/filler")
        async let fifth = end(downloader, origin.url("/waits"), permit)
        async let sharing = end(downloader, origin.url("/shared"), nil)
        try await until { await downloader.currentDownloadCount >= 6 }
        async let shared = end(downloader, origin.url("/shared"), permit)
        permit.revoke()
        await downloader.endRevoked()
        for result in [await third, await fifth] {
            #expect(throws: WebImageError.self) { try result.get() }
        }
        #expect(await downloader.currentDownloadCount == 4)
        origin.release("/slow")
        origin.release("/moved")
        origin.release("/filler")
        let (whole, beside) = (await first, await fourth)
        #expect(try whole.get() == 200 && beside.get() == 200)
        let hop = await second
        #expect(throws: WebImageError.self) { try hop.get() }
        // Somebody who shares the download still may, so it goes on.
        _ = (await shared, await sharing)
        #expect(origin.requestCount("/shared") == 1)
        #expect(origin.requestCount("/target") == 0 && origin.requestCount("/waits") == 0)
        #expect(origin.requestCount("/busy") == 1)
        let late = await end(downloader, origin.url("/late"), permit)
        #expect(throws: WebImageError.self) { try late.get() }
        #expect(origin.requestCount("/late") == 0)
    }
}
