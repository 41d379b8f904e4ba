import Origin
import Testing

@testable import WebImage

/// Bodies that broke off, and what bounds the tries.
@Suite("Going on with a body that broke off", .timeLimit(.minutes(5)))
struct ImageDownloaderResumeTests {
    private let origin: OriginServer
    private let body = pseudoImage(200_000)

    init() throws {
        origin = try OriginServer()
    }

    /// Breaks off after so many bytes at each of the first requests; knows Range and If-Range as a server of files does.
    private func route(
        _ path: String, cuts: [Int], headers: [(String, String)] = [("ETag", "\"1\"")], ignoresRange: Bool = false,
        shift: Int = 0
    ) {
        let (body, validator) = (body, headers.first?.1)
        origin.route(path) { request in
            let fault =
                request.number <= cuts.count ? OriginResponse.Fault.truncated(after: cuts[request.number - 1]) : nil
            if !ignoresRange, let range = request.header("Range"), request.header("If-Range") == validator,
                let from = Int(range.dropFirst("bytes=".count).dropLast())
            {
                return OriginResponse(
                    status: 206,
                    headers: headers + [("Content-Range", "bytes \(from + shift)-\(body.count - 1)/\(body.count)")],
                    body: Array(body[(from + shift)...]), fault: fault)
            }
            return OriginResponse(headers: headers, body: body, fault: fault)
        }
    }

    private func ranges(_ path: String) -> [String?] {
        origin.requests.filter { $0.path == path }.map { $0.header("Range") }
    }

    @Test("The next try asks for the rest alone, and another one for the rest of that")
    func resumes() async throws {
        route("/a", cuts: [100_000, 50_000])
        let image = try await makeDownloader().download(origin.url("/a"))
        #expect(try image.body.bytes == body)
        #expect(image.tries == 3 && image.statusCode == 206 && image.resumedFrom == 150_000)
        #expect(ranges("/a") == [nil, "bytes=100000-", "bytes=150000-"])
        #expect(origin.requests.last?.header("If-Range") == "\"1\"")
    }

    @Test("A body in a file is gone on with too")
    func spooled() async throws {
        route("/a", cuts: [100_000])
        let downloader = try makeDownloader {
            $0.memoryLimit = 10_000
            $0.openTemporaryFile = { () throws(WebImageError) in openUnnamedFile() }
        }
        let image = try await downloader.download(origin.url("/a"))
        #expect(try image.body.bytes == body && image.resumedFrom == 100_000 && image.body.fileDescriptor != nil)
    }

    @Test("A strong date vouches for the bytes where there is no ETag")
    func dates() async throws {
        let dated = ("Last-Modified", "Mon, 05 Jan 2026 10:00:00 GMT")
        route("/strong", cuts: [100_000], headers: [dated, ("Date", "Mon, 05 Jan 2026 11:00:00 GMT")])
        route("/weak", cuts: [100_000], headers: [dated, ("Date", "Mon, 05 Jan 2026 10:00:00 GMT")])
        let downloader = try makeDownloader()
        #expect(try await downloader.download(origin.url("/strong")).resumedFrom == 100_000)
        #expect(try await downloader.download(origin.url("/weak")).body.bytes == body)
        #expect(ranges("/strong") == [nil, "bytes=100000-"] && ranges("/weak") == [nil, nil])
    }

    @Test(
        "Where nothing vouches for the bytes, or there are few, the next try begins anew",
        arguments: [
            ([("ETag", "W/\"1\"")], 100_000), ([], 100_000), ([("ETag", "\"1\""), ("Accept-Ranges", "none")], 100_000),
            ([("ETag", "\"1\"")], 60_000),
        ] as [([(String, String)], Int)])
    func beginsAnew(headers: [(String, String)], cut: Int) async throws {
        route("/a", cuts: [cut], headers: headers)
        let image = try await makeDownloader().download(origin.url("/a"))
        #expect(try image.body.bytes == body)
        #expect(ranges("/a") == [nil, nil])
    }

    @Test("A packed body that broke off begins anew: what is there is not what came over the wire")
    func packed() async throws {
        let wire = gzip(body)
        origin.route("/a") { request in
            OriginResponse(
                headers: [("ETag", "\"1\""), ("Content-Encoding", "gzip")], body: wire,
                fault: request.number == 1 ? .truncated(after: 150_000) : nil)
        }
        let image = try await makeDownloader().download(origin.url("/a"))
        #expect(try image.body.bytes == body)
        #expect(ranges("/a") == [nil, nil])
    }

    @Test("A server that sends all of it, because it has changed or knows no ranges, is believed")
    func whole() async throws {
        route("/a", cuts: [100_000], ignoresRange: true)
        let image = try await makeDownloader().download(origin.url("/a"))
        #expect(try image.body.bytes == body)
        #expect(image.statusCode == 200 && image.resumedFrom == 0 && ranges("/a") == [nil, "bytes=100000-"])
    }

    /// A URL whose first body is cut, and then every request for the rest gets the same answer.
    private func cutOnce(_ path: String, rest: OriginResponse) {
        let body = body
        origin.route(path) { request in
            guard request.header("Range") == nil else { return rest }
            return OriginResponse(
                headers: [("ETag", "\"1\""), ("Last-Modified", "Mon, 05 Jan 2026 10:00:00 GMT")], body: body,
                fault: request.number == 1 ? .truncated(after: 100_000) : nil)
        }
    }

    private func part(_ headers: [(String, String)], range: String = "100000-199999/200000") -> OriginResponse {
        OriginResponse(
            status: 206, headers: headers + [("Content-Range", "bytes \(range)")], body: Array(body[..<100_000]))
    }

    @Test("Parts of two representations are not joined: the whole is asked for, in the same try")
    func anotherRepresentation() async throws {
        let eTag = ("ETag", "\"1\"")
        let answers = [
            ("other ETag", part([("ETag", "\"2\"")])), ("weak ETag", part([("ETag", "W/\"1\"")])),
            ("no ETag", part([("Last-Modified", "Mon, 05 Jan 2026 10:00:00 GMT")])),
            ("other date", part([eTag, ("Last-Modified", "Mon, 05 Jan 2026 10:00:01 GMT")])),
            ("longer", part([eTag], range: "100000-199999/200001")),
            ("shorter", part([eTag], range: "100000-199998/199999")),
            ("no length", part([eTag], range: "100000-199999/*")),
            ("packed", part([eTag, ("Content-Encoding", "gzip")])),
            ("earlier", part([eTag], range: "99999-199999/200000")),
            ("fewer", part([eTag], range: "100000-150000/200000")),
        ]
        let downloader = try makeDownloader()
        for (index, (name, answer)) in answers.enumerated() {
            cutOnce("/\(index)", rest: answer)
            let image = try await downloader.download(origin.url("/\(index)"))
            #expect(try image.body.bytes == body, "\(name)")
            #expect(image.tries == 2 && image.statusCode == 200 && image.resumedFrom == 0, "\(name)")
            #expect(ranges("/\(index)") == [nil, "bytes=100000-", nil], "\(name)")
        }
    }

    @Test(
        "A server that refuses requests for a part is asked for the whole in the same try", arguments: [400, 403, 416])
    func refusedPart(status: Int) async throws {
        cutOnce("/a", rest: OriginResponse(status: status))
        let image = try await makeDownloader { $0.maxTries = 2 }.download(origin.url("/a"))
        #expect(try image.body.bytes == body && image.tries == 2)
        #expect(ranges("/a") == [nil, "bytes=100000-", nil])
    }

    @Test("So is one whose parts the caller's rules do not take")
    func ruledOutPart() async throws {
        route("/a", cuts: [100_000])
        let image = try await makeDownloader { $0.acceptableStatusCodes = [200...200] }.download(origin.url("/a"))
        #expect(try image.body.bytes == body && image.statusCode == 200)
    }

    @Test("A server that fails at the request for a part is asked for the whole at the next try")
    func failsAtParts() async throws {
        cutOnce("/a", rest: OriginResponse(status: 500))
        let image = try await makeDownloader().download(origin.url("/a"))
        #expect(try image.body.bytes == body && image.tries == 3)
        #expect(ranges("/a") == [nil, "bytes=100000-", nil])
    }

    @Test("A refusal of the whole is final: no third request is made for it")
    func refusedAgain() async throws {
        let body = body
        origin.route("/a") { request in
            request.number == 1
                ? OriginResponse(headers: [("ETag", "\"1\"")], body: body, fault: .truncated(after: 100_000))
                : OriginResponse(status: 403)
        }
        let error = try #require(await makeDownloader().failure(origin.url("/a")))
        #expect(error.httpStatus == 403 && error.tries == 2)
        #expect(ranges("/a") == [nil, "bytes=100000-", nil])
    }

    @Test("The request for the whole keeps the host's rate")
    func keepsRate() async throws {
        cutOnce("/a", rest: OriginResponse(status: 403))
        let began = ContinuousClock.now
        let downloader = try makeDownloader { $0.hosts.requestsPerSecond = 5 }
        _ = try await downloader.download(origin.url("/a"))
        #expect(origin.requestCount() == 3 && ContinuousClock.now - began >= .milliseconds(390))
    }

    @Test("It can be turned off")
    func never() async throws {
        route("/a", cuts: [100_000])
        #expect(try await makeDownloader { $0.resumeFrom = nil }.download(origin.url("/a")).resumedFrom == 0)
        #expect(ranges("/a") == [nil, nil])
    }

    @Test("The rest counts against the size limit with what was there")
    func sizeLimit() async throws {
        route("/a", cuts: [100_000])
        let downloader = try makeDownloader { $0.maxBodyBytes = 150_000 }
        let body = body
        // Chunks announce nothing.
        origin.route("/a") { request in
            guard request.header("Range") == nil else {
                return OriginResponse(
                    status: 206, headers: [("ETag", "\"1\""), ("Content-Range", "bytes 100000-199999/*")],
                    body: Array(body[100_000...]), framing: .chunked(size: 10_000))
            }
            return OriginResponse(
                headers: [("ETag", "\"1\"")], body: body, framing: .chunked(size: 10_000),
                fault: .truncated(after: 100_000))
        }
        #expect(await downloader.failure(origin.url("/a"))?.code == .tooLarge)
        #expect(origin.requestCount() == 2)
    }

    @Test("All tries together have a limit of time with a connection, with which the one in flight ends")
    func totalTime() async throws {
        origin.route("/stalls", OriginResponse(body: body, fault: .stall(after: 10)))
        origin.route("/busy", OriginResponse.busy(retryAfter: 1))
        let downloader = try makeDownloader {
            $0.maxTotalTime = 0.3
            $0.maxTries = 2
        }
        let error = try #require(await downloader.failure(origin.url("/stalls")))
        #expect(error.code == .timedOut && error.tries == 1 && error.message.hasPrefix("not done after 0.3 s"))
        // A pause between two tries costs nothing of it.
        let busy = try #require(await downloader.failure(origin.url("/busy")))
        #expect(busy.httpStatus == 503 && busy.tries == 2)
    }

    @Test("Which errors are tried again can be chosen, by kind and by status")
    func kinds() async throws {
        origin.route("/404", OriginResponse(status: 404))
        origin.route("/503", OriginResponse(status: 503))
        origin.route("/cut", OriginResponse(body: body, fault: .truncated(after: 10)))
        let downloader = try makeDownloader {
            $0.retriedErrors = [.truncated]
            $0.retriedStatusCodes = [404]
        }
        #expect(await downloader.failure(origin.url("/404"))?.tries == 3)
        #expect(await downloader.failure(origin.url("/503"))?.tries == 1)
        #expect(await downloader.failure(origin.url("/cut"))?.tries == 3)
    }
}
