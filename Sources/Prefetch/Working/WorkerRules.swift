internal import Threading
internal import WebImage

/// What a worker refuses by its own settings, whatever the batch says: another worker may take it.
final class WorkerRules: Sendable {
    private struct State {
        /// Options of the worker.
        var options: [String] = []
        /// How it asks, in words; nil: with credentials or code of its own, so that its answers are its own too.
        var way: String?
        /// Formats that it met, and whose library is not installed here.
        var missing: Set<ImageFormat> = []
    }

    private let state = Locked(State())

    func learn(_ downloads: ImageDownloader.Configuration, _ coder: ImageCoder, maxImageBytes: Int) {
        func option(_ name: String, _ values: [String]) -> [String] {
            values.isEmpty ? [] : [name + " " + values.sorted().joined(separator: ",")]
        }
        var options = option("--allow-net", downloads.addressPolicy.allow.map(\.description))
        options += option("--deny-net", downloads.addressPolicy.deny.map(\.description))
        options += option("--proxy", downloads.proxy.map { [URLRedaction.url($0)] } ?? [])
        options += downloads.workerFilters.map {
            ($0 as? any CustomStringConvertible)?.description ?? "\(type(of: $0))"
        }
        let memory = min(coder.limits.maxMemory, coder.memory.limit)
        for (name, value, usual) in [
            ("--max-pixels", coder.limits.maxPixels, ImageCoder.Limits().maxPixels),
            ("--max-decode-memory", memory, DecodeMemory.shared.limit),
            ("--max-size", maxImageBytes, PrefetchWorker.Configuration().maxImageBytes),
        ] where value != usual { options += option(name, [String(value)]) }
        let way = downloads.wayOfAsking
        state.withLock { ($0.options, $0.way) = (options, way) }
    }

    /// Names a question, so that workers of this machine which ask in the same way and refuse the same have the same name for it; nil: the
    /// answer is this worker's own.
    func name(of question: String) -> String? {
        guard let way = state.withLock({ $0.way }) else { return nil }
        // Another machine may reach what this one does not.
        let text = [question, ThisHost.name, record, way].joined(separator: "\n")
        return String(SHA256.hash(Array(text.utf8)).hex.prefix(32))
    }

    /// For the worker's record: a digest that tells apart workers that refuse different things, then the settings.
    var record: String {
        let text = state.withLock { state in
            let missing =
                state.missing.isEmpty
                ? [] : ["no library for " + state.missing.map(\.rawValue).sorted().joined(separator: ",")]
            return (state.options + missing).joined(separator: " ")
        }
        return SHA256.hash(Array(text.utf8)).hex.prefix(12) + " " + text
    }

    /// Whether a failure is due to them.
    func refuse(_ error: WebImageError) -> Bool {
        switch error.reason {
        case .closedNetwork, .deniedNetwork, .workerFilter, .decodeMemory, .pixels, .bytes: return true
        default: break
        }
        guard let format = error.unverifiedFormat, [.webp, .avif].contains(format), !ImageCoder.canDecode(format) else {
            return false
        }
        state.withLock { _ = $0.missing.insert(format) }
        return true
    }
}

extension ImageDownloader.Configuration {
    /// What an answer depends on beside the request; nil: also on secrets, or on code.
    fileprivate var wayOfAsking: String? {
        let secrets = ["authorization", "proxy-authorization", "cookie"]
        let isPlain =
            credentials.isEmpty && clientCertificateFile == nil && headersFilter == nil && requestModifier == nil
            && responseModifier == nil && !headers.contains { secrets.contains($0.name.asciiLowercased) }
            && !(proxy ?? "").utf8.contains(UInt8(ascii: "@"))
        guard isPlain else { return nil }
        let parts = [proxy ?? "", caFile ?? "", "\(ipVersion) \(usesHTTP2)"] + connectTo + resolve + dnsServers
        return (parts + headers.map { "\($0.name):\($0.value)" }).joined(separator: "\n")
    }
}
