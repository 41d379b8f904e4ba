import PrefetchModel

@testable import WebImage

extension FuzzTarget {
    /// Lines of headers: what a worker reads of each value itself.
    static func readHeaders(_ bytes: [UInt8]) throws {
        let lines = lines(bytes)
        func values(_ number: Int) -> [String] { lines.indices.contains(number) ? [lines[number]] : [] }
        let now = 1_700_000_000
        if let seconds = Freshness.seconds(
            control: lines, expires: lines.first, date: values(1).first, age: values(2).first, now: now)
        {
            try claim((0...10 * Freshness.year).contains(seconds), "fresh for \(seconds) s")
        }
        if let refusal = RobotsTag.refusal(of: lines, agent: "prefetch") {
            try claim(refusal.utf8.allSatisfy { (0x61...0x7A).contains($0) }, "a directive that is none: \(refusal)")
        }
        let coding = ContentCoding(lines)
        try claim((0...5).contains(coding.packings), "\(coding.packings) packings")
        for status in [202, 401, 403] {
            guard let demand = AccessDemand(status: status, headers: { _ in lines }) else { continue }
            try claim(
                demand.text.utf8.count < 300
                    && demand.text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F },
                "a demand that cannot be shown: \(demand.text)")
        }
        let representation = PartialBody.Representation(eTag: lines.first, lastModified: values(1).first, length: nil)
        let body = ImageBody(Array(repeating: 1, count: 5))
        for length in [nil, 10] {
            var known = representation
            known.length = length
            guard let validator = PartialBody.validator(of: known, date: values(2).first) else { continue }
            try claim(
                HTTPHeader("If-Range", validator).isValid || validator.utf8.contains { $0 < 0x20 || $0 == 0x7F },
                validator)
            let partial = PartialBody(
                url: "http://host.test/", body: body, representation: known, validator: validator, nextInspection: 1)
            for line in lines {
                guard let rest = partial.rest(line, of: representation) else { continue }
                try claim(rest.end > 5 && (length == nil || rest.end == length), "a rest that ends at \(rest.end)")
            }
        }
        _ = Netrc.credentials(in: String(decoding: bytes, as: UTF8.self))
    }

    /// A URL, where it leads, and what is shown of it.
    static func readURL(_ bytes: [UInt8]) throws {
        let parts = bytes.split(separator: 0x0A, maxSplits: 1)
        let text = String(decoding: parts.first ?? [], as: UTF8.self)
        let location = (parts.count > 1 ? Array(parts[1]) : []).withUnsafeBytes(CurlInfo.text)
        let masked = URLRedaction.url(text)
        try claim(URLRedaction.url(masked).utf8.elementsEqual(masked.utf8), "masked again it is another: \(masked)")
        let sentence = URLRedaction.text(text)
        try claim(
            URLRedaction.text(sentence).utf8.elementsEqual(sentence.utf8), "masked again it is another: \(sentence)")
        _ = IPAddress(text)
        _ = CIDR(text)
        for host in ["http://host.test/a/b?c", "https://u:p@[::1]:8443/x", text] {
            guard let url = try? RequestURL(host) else { continue }
            try check(url)
            guard let next = try? url.redirected(to: location) else { continue }
            try check(next)
            try claim(next.user == nil || location.isEmpty || location.utf8.first == 0x23, "credentials of a redirect")
            try claim(url.scheme == "http" || next.scheme == "https", "from https to \(next.scheme)")
        }
    }

    private static func check(_ url: RequestURL) throws {
        try claim(["http", "https"].contains(url.scheme), "the scheme \(url.scheme)")
        try claim((1...65_535).contains(url.port), "port \(url.port)")
        // Names may be international: curl makes ASCII of them.
        try claim(url.text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }, "a byte that may not be sent: \(url.text)")
        try claim(url.target.utf8.allSatisfy { $0 < 0x7F }, "a byte that is not encoded: \(url.target)")
        try claim(url.target.utf8.first == 0x2F, "the target \(url.target)")
        guard let again = try? RequestURL(url.text) else {
            throw Contradiction(description: "not read back: \(url.text)")
        }
        try claim(
            again.text == url.text && again.host == url.host && again.port == url.port && again.target == url.target
                && again.origin == url.origin,
            "read back as another: \(url.text), \(again.text)")
        _ = LookupHost(url)
        _ = url.literalAddress
        _ = try? ProxyTarget(url)
    }

    /// A file, its rules as another worker gets them, and a path.
    static func readRobots(_ bytes: [UInt8]) throws {
        let end = bytes.firstIndex(of: 0x0A) ?? bytes.endIndex
        let target = "/" + String(decoding: bytes[..<end], as: UTF8.self)
        let rules = RobotsRules(bytes[end...], agent: "prefetch")
        let judged = rules.judge(target)
        let most = RobotsRules.maxSteps + 4 * (bytes.count + target.utf8.count * 3 + 100)
        try claim(judged.steps <= most, "\(judged.steps) steps")
        if let delay = rules.delay { try claim(delay > 0 && delay <= RobotsRules.maxDelay, "a delay of \(delay) s") }
        try claim(rules.byteCount <= 512 + 20 * bytes.count, "\(rules.byteCount) bytes of \(bytes.count)")
        let copy = RobotsRules(text: rules.text, agent: "other")
        try claim(copy.judge(target).verdict == judged.verdict, "another verdict of a copy: \(rules.text)")
        try claim(copy.delay == rules.delay, "another delay of a copy: \(rules.text)")
    }

    /// A body with its codings, in pieces.
    static func readCodings(_ bytes: [UInt8]) throws {
        guard bytes.count > 2 else { return }
        let names = [
            "gzip", "deflate", "aws-chunked", "gzip, gzip", "gzip, aws-chunked", "x, aws-chunked, gzip, deflate",
        ]
        let lines = [names[Int(bytes[0]) % names.count]]
        let size = Int(bytes[1]) + 1
        let body = Array(bytes[2...])
        guard let layers = BodyLayers(ContentCoding(lines)) else { return }
        var (taken, place) = (0, 0)
        while place < body.count {
            let piece = Array(body[place..<min(place + size, body.count)])
            place += piece.count
            let goesOn = piece.withUnsafeBytes { piece in
                layers.read(piece) { part in
                    taken += part.count
                    return taken <= 1 << 20
                }
            }
            // One part may be the last one that is too much; nothing is given after that.
            try claim(taken <= 1 << 20 + 1 << 16, "\(taken) bytes after the end")
            guard goesOn == true else { return try claim(goesOn == false || layers.failure != nil, "no reason") }
        }
    }
}
