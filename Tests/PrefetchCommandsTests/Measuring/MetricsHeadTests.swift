import Testing

@testable import PrefetchCommands

@Suite("Heads of requests for metrics", .timeLimit(.minutes(5)))
struct MetricsHeadTests {
    private let names = ListenNames(ListenAddress(host: "127.0.0.1", port: 0))

    private func read(_ bytes: [UInt8], by step: Int = .max) -> MetricsHead.Reading {
        var (head, rest) = (MetricsHead(names: names), bytes[...])
        while !rest.isEmpty {
            let reading = head.take(Array(rest.prefix(step)))
            guard reading == .incomplete else { return reading }
            rest = rest.dropFirst(step)
        }
        return .incomplete
    }

    private static let ask = "GET /healthz HTTP/1.1\r\nHost: h\r\n"
    private static func asked(_ path: String = "/healthz", accept: String = "") -> MetricsHead.Reading {
        .request(MetricsServer.Request(path: path, accept: accept))
    }

    private static let good: [(String, MetricsHead.Reading)] = [
        (ask + "\r\n", asked()),
        ("HEAD /metrics?a=b?c HTTP/1.0\r\n\r\n", asked("/metrics")),
        ("\r\n\n\r" + ask + "\r\n", asked()),
        ("GET //metrics#x HTTP/1.1\r\n\r\n", asked("//metrics#x")),
        ("GET /?/metrics HTTP/1.1\r\n\r\n", asked("/")),
        (ask + "Accept: text/html\r\nX:\r\naCCEPT:\t a/b;q=1 \t\r\n\r\n", asked(accept: "text/html,a/b;q=1")),
        (ask + "X: é\tü\r\n\r\n", asked()),
        (ask + "!#$%&'*+-.^_`|~09azAZ: (,/:;<=>?@[\\]{})\"\r\n\r\n", asked()),
        // What comes after the head does not count.
        (ask + "Content-Length: 5\r\n\r\nhello\0\n", asked()),
        (ask + "Transfer-Encoding: chunked\r\n\r\nzz\n", asked()),
        (ask + "\r\n" + ask + "\r\n", asked()),
    ]

    private static let refused: [(String, Int)] = [
        // The line.
        ("hello\r\n\r\n", 400), ("GET\r\n\r\n", 400), ("GET /healthz\r\n\r\n", 400), ("GET HTTP/1.1\r\n\r\n", 400),
        ("GET  HTTP/1.1\r\n\r\n", 400), ("GET  /healthz HTTP/1.1\r\n\r\n", 400),
        (" GET /healthz HTTP/1.1\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1 \r\n\r\n", 400), ("GET /a b HTTP/1.1\r\n\r\n", 400), ("GET\t/a\tHTTP/1.1\r\n\r\n", 400),
        ("GET /a\tb HTTP/1.1\r\n\r\n", 400), ("GET /é HTTP/1.1\r\n\r\n", 400), ("GET healthz HTTP/1.1\r\n\r\n", 400),
        ("GET http://h/healthz HTTP/1.1\r\n\r\n", 400), ("OPTIONS * HTTP/1.1\r\n\r\n", 400),
        ("CONNECT h:80 HTTP/1.1\r\n\r\n", 400),
        // The version.
        ("GET /healthz HTTP/0.9\r\n\r\n", 400), ("GET /healthz HTTP/1.2\r\n\r\n", 400),
        ("GET /healthz HTTP/2.0\r\n\r\n", 400), ("GET /healthz HTTP/1.10\r\n\r\n", 400),
        ("GET /healthz http/1.1\r\n\r\n", 400), ("GET /healthz RTSP/1.0\r\n\r\n", 400),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        // The method.
        ("POST /healthz HTTP/1.1\r\n\r\n", 405), ("PUT /x HTTP/1.1\r\n\r\n", 405),
        ("DELETE /healthz HTTP/1.1\r\n\r\n", 405), ("CONNECT /healthz HTTP/1.1\r\n\r\n", 405),
        ("OPTIONS /healthz HTTP/1.1\r\n\r\n", 405), ("TRACE /healthz HTTP/1.1\r\n\r\n", 405),
        ("PATCH /healthz HTTP/1.1\r\n\r\n", 405), ("POST /healthz HTTP/1.1\r\nHost: a.example\r\n\r\n", 405),
        ("FETCH /healthz HTTP/1.1\r\n\r\n", 400), ("get /healthz HTTP/1.1\r\n\r\n", 400),
        // Bytes.
        ("GET /healthz HTTP/1.1\nHost: h\n\n", 400), (ask + "X: a\n\r\n", 400), (ask + "\n", 400),
        (ask + "X: a\rb\r\n\r\n", 400),
        (ask + "X: a\r\r\n\r\n", 400), (ask + "X: \0\r\n\r\n", 400), ("GET /\0 HTTP/1.1\r\n\r\n", 400),
        (ask + "X: \u{1}\r\n\r\n", 400), (ask + "X: \u{7F}\r\n\r\n", 400), ("\0", 400),
        ("\u{16}\u{3}\u{1}", 400),
        // Fields.
        (ask + "X\r\n\r\n", 400), (ask + ": a\r\n\r\n", 400), (ask + "X : a\r\n\r\n", 400),
        (ask + "X y: a\r\n\r\n", 400),
        (ask + "X(y): a\r\n\r\n", 400), (ask + "é: a\r\n\r\n", 400), (ask + "X: a\r\n b\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\n Host: h\r\n\r\n", 400),
        // Whose request it is, and where it ends.
        (ask + "Host: h\r\n\r\n", 400), ("GET /healthz HTTP/1.1\r\nhOST: \t a.example \t \r\n\r\n", 421),
        ("HEAD /healthz HTTP/1.1\r\nHost:\r\n\r\n", 421), (ask + "Content-Length:\r\n\r\n", 400),
        (ask + "Content-Length: -1\r\n\r\n", 400), (ask + "Content-Length: +1\r\n\r\n", 400),
        (ask + "Content-Length: 1, 1\r\n\r\n", 400), (ask + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (ask + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400),
    ]

    @Test("What is a request, and what is refused, does not depend on how it arrives", arguments: [1, 7, .max])
    func table(step: Int) {
        for (text, reading) in Self.good {
            #expect(read(Array(text.utf8), by: step) == reading, "\(text.debugDescription)")
        }
        for (text, status) in Self.refused {
            #expect(read(Array(text.utf8), by: step) == .refused(status), "\(text.debugDescription)")
        }
    }

    @Test("A head that is cut anywhere is incomplete")
    func cut() {
        for (text, _) in Self.good {
            let bytes = Array(text.utf8)
            let end = bytes.indices.first { read(Array(bytes.prefix($0))) != .incomplete } ?? bytes.count
            #expect(bytes.prefix(end).suffix(4) == Array("\r\n\r\n".utf8)[...])
        }
    }

    @Test("Of 8,192 bytes it is read, and of one more it is refused, where that comes first")
    func size() {
        let whole = Self.ask + "X: \(String(repeating: "a", count: 8_192 - Self.ask.utf8.count - 7))\r\n\r\n"
        #expect(whole.utf8.count == 8_192)
        let readings = [
            read(Array(whole.utf8)), read(Array(whole.utf8.dropLast(4)) + Array("a\r\n\r\n".utf8)),
            read([UInt8](repeating: UInt8(ascii: "a"), count: 8_192)),
            read([UInt8](repeating: UInt8(ascii: "a"), count: 8_193)),
            read(Array(Self.ask.utf8) + [UInt8](repeating: UInt8(ascii: " "), count: 300_000)),
            read([UInt8](repeating: 0, count: 300_000)), read([UInt8](repeating: UInt8(ascii: "\n"), count: 300_000)),
        ]
        #expect(
            readings == [
                Self.asked(), .refused(431), .incomplete, .refused(431), .refused(431), .refused(400), .incomplete,
            ])
    }

    @Test("Any bytes are read to an end, and to the same one in one piece and in many")
    func random() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("GET HEAD / HTTP/1.1 \r\n\r\n:\n\r\0Host: h".utf8)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 1...80, using: &generator)).map { _ in
                Bool.random(using: &generator) ? alphabet.randomElement(using: &generator)! : .random(in: 0...255)
            }
            let start = Array((Bool.random(using: &generator) ? Self.ask : "").utf8)
            #expect(read(start + bytes) == read(start + bytes, by: 1), "\(start + bytes)")
        }
    }
}
