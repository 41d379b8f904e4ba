extension OriginResponse {
    func steps(for request: OriginRequest) -> [OriginStep] {
        var steps: [OriginStep] = delay > 0 ? [.wait(seconds: delay)] : []
        switch fault {
        case .closeBeforeHeader: return steps + [.close]
        case .resetBeforeHeader: return steps + [.reset]
        case .raw(let bytes): return steps + [.send(bytes), .close]
        case .stallBeforeHeader: steps.append(.hold)
        case .informationalFlood(let count):
            let hint = Array("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n".utf8)
            steps += Array(repeating: .send(hint), count: count)
        default: break
        }
        if case .dripHeader(let bytes, let seconds) = fault {
            let whole = head
            for start in stride(from: 0, to: whole.count, by: max(1, bytes)) {
                steps += [
                    .send(Array(whole[start..<min(start + max(1, bytes), whole.count)])), .wait(seconds: seconds),
                ]
            }
        } else {
            steps.append(.send(head))
        }
        if request.method != "HEAD" && status >= 200 && status != 204 && status != 304 { steps += bodySteps }
        if closes { steps.append(.close) }
        return steps
    }

    private var closes: Bool {
        if case .untilClose = framing { return true }
        return closesConnection
    }

    private var head: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(256)
        var version = "HTTP/1.1 "
        if case .untilClose = framing { version = "HTTP/1.0 " }
        func append(_ string: String) { text.append(contentsOf: string.utf8) }
        func append(_ name: String, _ value: String) {
            append(name)
            append(": ")
            append(value)
            append("\r\n")
        }
        append(version)
        append("\(status) \(Self.reason(status))\r\n")
        for header in headers { append(header.name, header.value) }
        switch framing {
        case .contentLength:
            if status >= 200 && status != 204 && status != 304 {
                append("Content-Length", "\(file?.count ?? body.count)")
            }
        case .announced(let length): append("Content-Length", length)
        case .announcedTwice(let first, let second):
            append("Content-Length", first)
            append("Content-Length", second)
        case .chunked: append("Transfer-Encoding", "chunked")
        case .untilClose: break
        }
        switch fault {
        case .headerFlood(let count): for index in 0..<count { append("X-Flood-\(index)", "water") }
        case .longHeader(let count): append("X-Long", String(repeating: "a", count: count))
        default: break
        }
        if closes { append("Connection", "close") }
        append("\r\n")
        return text
    }

    private var bodySteps: [OriginStep] {
        if let file { return [.sendFile(file)] }
        switch fault {
        case .truncated(let count): return [.send(framed(upTo: count)), .close]
        case .reset(let count): return [.send(framed(upTo: count)), .reset]
        case .stall(let count):
            let whole = framed(upTo: nil)
            let first = framed(upTo: count)
            return [.send(first), .hold, .send(Array(whole.dropFirst(first.count)))]
        case .drip(let bytes, let seconds):
            let whole = framed(upTo: nil)
            return stride(from: 0, to: whole.count, by: max(1, bytes)).flatMap { start -> [OriginStep] in
                [.send(Array(whole[start..<min(start + max(1, bytes), whole.count)])), .wait(seconds: seconds)]
            }
        case .endless: return [.sendForever(framed(upTo: body.count))]
        default: return body.isEmpty && !isChunked ? [] : [.send(framed(upTo: nil))]
        }
    }

    private var isChunked: Bool {
        if case .chunked = framing { return true }
        return false
    }

    /// The body as sent; cut after `limit` bytes, without its terminator.
    private func framed(upTo limit: Int?) -> [UInt8] {
        guard case .chunked(let size) = framing else { return limit.map { Array(body.prefix($0)) } ?? body }
        var bytes: [UInt8] = []
        var start = 0
        let end = min(limit ?? body.count, body.count)
        while start < end {
            let chunk = min(max(1, size), body.count - start)
            bytes += Array("\(String(chunk, radix: 16))\r\n".utf8)
            bytes += body[start..<min(start + chunk, end)]
            if start + chunk <= end { bytes += [13, 10] }
            start += chunk
        }
        if limit == nil { bytes += Array("0\r\n\r\n".utf8) }
        return bytes
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 304: "Not Modified"
        case 404: "Not Found"
        case 429: "Too Many Requests"
        case 503: "Service Unavailable"
        default: "Status"
        }
    }
}
