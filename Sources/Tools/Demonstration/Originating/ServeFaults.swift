internal import Origin
internal import PrefetchCommands

struct ServeFaults: Sendable {
    /// Delay of each response in seconds: minimum and maximum.
    var delay: ClosedRange<Double>?
    var hasFaults: Bool
    /// Whether every request is answered by a page, as by a network that wants a login.
    var isPortal: Bool

    static let kinds = [
        "stall", "halt", "drip", "slow", "reset", "cut", "close", "html", "empty", "endless", "flap", "gone", "404",
        "500", "503",
    ]

    private static let body = GeneratedImage.jpeg(seed: 7, width: 320, height: 240)

    func response(to request: OriginRequest, plain: OriginResponse) -> OriginResponse {
        var response = plain
        if hasFaults, request.path.hasPrefix("/fault/") {
            response = Self.fault(String(request.path.dropFirst(7).prefix { $0 != "/" }), number: request.number)
        }
        if isPortal { response = Self.page("Log in to go on to \(request.path)", type: "text/html") }
        if let delay {
            // Derived from the path: evenly spread, and the same in every run.
            let spread = request.path.utf8.reduce(UInt64(14_695_981_039_346_656_037)) {
                ($0 ^ UInt64($1)) &* 1_099_511_628_211
            }
            response.delay += delay.lowerBound + (delay.upperBound - delay.lowerBound) * Double(spread % 1000) / 999
        }
        return response
    }

    private static func page(_ text: String, type: String) -> OriginResponse {
        OriginResponse(headers: [("Content-Type", type)], body: Array("<!DOCTYPE html><p>\(text).</p>".utf8))
    }

    /// `number`: how often the path has been requested.
    private static func fault(_ kind: String, number: Int) -> OriginResponse {
        let type = [("Content-Type", "image/jpeg")]
        func image(_ fault: OriginResponse.Fault) -> OriginResponse {
            OriginResponse(headers: type, body: body, fault: fault)
        }
        switch kind {
        case "stall": return image(.stallBeforeHeader)
        case "halt": return image(.stall(after: body.count / 2))
        case "drip": return image(.drip(bytes: 20, seconds: 0.1))
        case "slow": return image(.drip(bytes: body.count / 5 + 1, seconds: 0.2))
        case "reset": return image(.reset(after: body.count / 2))
        case "cut": return image(.truncated(after: body.count / 2))
        case "close": return OriginResponse(fault: .closeBeforeHeader)
        case "html": return page("No picture", type: "image/jpeg")
        case "empty": return OriginResponse(headers: type)
        case "endless": return OriginResponse(headers: type, body: body, framing: .chunked(size: 8192), fault: .endless)
        case "flap": return number % 2 == 1 ? OriginResponse(status: 503) : OriginResponse(headers: type, body: body)
        case "gone": return OriginResponse(status: 404, delay: 1)
        default: return OriginResponse(status: Int(kind) ?? 404)
        }
    }
}
