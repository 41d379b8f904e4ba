import Testing
import WebImage

@Suite(.timeLimit(.minutes(5)))
struct OutcomeTests {
    @Test(
        arguments: [
            (.invalidURL, .invalidURL), (.badImageData, .badImage), (.cacheNotModified, .httpError),
            (.blackListed, .blacklisted), (.invalidDownloadStatusCode, .httpError), (.cancelled, .cancelled),
            (.timedOut, .timeout), (.cannotFindHost, .dns), (.cannotConnectToHost, .connect),
            (.secureConnectionFailed, .tls), (.tooLarge, .tooLarge), (.refused, .refused),
            (.connectionLost, .truncated), (.invalidDownloadOperation, .refused), (.invalidDownloadResponse, .refused),
            (.invalidDownloadContentType, .refused),
            (.tooManyRedirects, .httpError), (.notCached, .notCached), (.digestMismatch, .mismatch),
            (.unsupportedFormat, .unsupported), (.localFault, nil),
        ] as [(WebImageError.Code, PrefetchOutcome?)])
    func `every error has its outcome, and a local fault has none`(code: WebImageError.Code, outcome: PrefetchOutcome?)
    {
        #expect(WebImageError(code, "").outcome == outcome)
        if let outcome { #expect(outcome.isSkipped) }
    }

    @Test
    func `options travel by name`() {
        #expect(WebImageOptions(name: "retryFailed") == .retryFailed)
        #expect(WebImageOptions(name: "delayPlaceholder") == nil)
        #expect(([.retryFailed, .fromCacheOnly] as WebImageOptions).names == ["retryFailed", "fromCacheOnly"])
        #expect(WebImageOptions.allNames.allSatisfy { WebImageOptions(name: $0)?.names == [$0] })
    }

    @Test
    func `bytes of later versions are unknown, and skipped`() {
        #expect(
            PrefetchOutcome(code: 0) == nil && PrefetchOutcome(code: 32) == nil && PrefetchOutcome(code: 255) == nil)
        #expect((1...21).allSatisfy { PrefetchOutcome(code: $0)?.rawValue == $0 })
        #expect((22...31).allSatisfy { PrefetchOutcome(code: $0) == .unknown })
        #expect(PrefetchOutcome.filtered.rawValue == 21 && PrefetchOutcome(name: "filtered") == .filtered)
        #expect(PrefetchOutcome.unknown.isSkipped && PrefetchOutcome.unknown.name == "unknown")
        #expect(PrefetchOutcome.notStored.rawValue == 20 && PrefetchOutcome(name: "notStored") == .notStored)
        #expect(PrefetchOutcome.allCases.allSatisfy { PrefetchOutcome(name: $0.name) == $0 })
        var counts = PrefetchCounts()
        counts[.unknown] = 2
        #expect((counts.finished, counts.skipped) == (2, 2))
    }

    @Test
    func `counts add up by outcome`() {
        var counts = PrefetchCounts()
        counts[.downloaded] = 5
        counts[.httpError] = 2
        counts.bytes = 100
        var more = PrefetchCounts()
        more[.hit] = 1
        more[.poison] = 1
        more.bytes = 11
        counts += more
        #expect((counts.finished, counts.skipped, counts.bytes) == (9, 3, 111))
    }
}
