internal import WebImage

/// Asks for images that others have fetched, as a URL of a list would be, but for their first bytes only.
struct WitnessProbe {
    /// Seconds in which a host in order answers.
    private static let timeout = 5.0
    private static let bytes = 65_536

    private let downloader: ImageDownloader

    init(_ downloader: ImageDownloader) { self.downloader = downloader }

    enum Answer: Sendable {
        case answered
        /// This worker's own rules close it, which says nothing of the network.
        case refused
        /// Nothing, or a page instead of an image.
        case silent
        /// The way to the network is out of order.
        case fault
        /// No socket, no memory, no slot.
        case notAsked
    }

    enum Finding: Sendable {
        /// One of them answers, with whatever status.
        case answer
        case silence
        /// None could be asked: there are none, or this worker's own rules close them.
        case nothing
        /// This worker cannot ask: it lacks descriptors, memory or a slot.
        case fault
    }

    nonisolated(nonsending) func ask(any witnesses: [QueueHosts.Witness]) async -> Finding {
        await withTaskGroup(of: Answer.self) { group in
            for witness in witnesses { group.addTask { await self.ask(witness) } }
            var finding = Finding.nothing
            for await answer in group {
                switch answer {
                case .answered:
                    group.cancelAll()
                    return .answer
                case .silent, .fault: if finding == .nothing { finding = .silence }
                case .notAsked: finding = .fault
                case .refused: break
                }
            }
            return finding
        }
    }

    func ask(_ witness: QueueHosts.Witness) async -> Answer {
        await withTaskGroup(of: Answer.self) { group in
            group.addTask { await self.request(witness) }
            // It may have to wait for its host or its name.
            group.addTask {
                try? await Task.sleep(for: .seconds(Self.timeout + 1))
                let state = await downloader.states(of: [witness.url])[ByteText(witness.url)]
                // Its turn has not come: transfers to a silent host may hold all slots.
                return [.waitingForSlot, .waitingForHost].contains(state?.phase) ? .notAsked : .silent
            }
            let answer = await group.next() ?? .silent
            group.cancelAll()
            return answer
        }
    }

    private func request(_ witness: QueueHosts.Witness) async -> Answer {
        let profile = try? await downloader.profile { downloads in
            downloads.maxTries = 1
            (downloads.connectTimeout, downloads.downloadTimeout) = (Self.timeout, Self.timeout)
            downloads.maxTime = Self.timeout
            downloads.maxBodyBytes = Self.bytes
            downloads.hosts.requestsPerSecond = witness.rate
        }
        guard let profile else { return .silent }
        do throws(WebImageError) {
            _ = try await downloader.download(
                witness.url, options: [.highPriority, .unasked], headers: [HTTPHeader("Range", "bytes=0-4095")],
                profile: profile, permit: nil)
            return .answered
        } catch {
            if error.isNetworkFault { return .fault }
            if error.mayBeLocal { return .silent }
            if error.code == .refused { return .refused }
            if error.code == .localFault { return .notAsked }
            // 511 is what portals are to answer (RFC 6585).
            if let status = error.httpStatus { return status == 511 ? .silent : .answered }
            return Self.ofAnAnswer.contains(error.code) ? .answered : .silent
        }
    }

    /// Errors of bytes that have arrived.
    private static let ofAnAnswer: Set<WebImageError.Code> = [
        .badImageData, .tooLarge, .unsupportedFormat, .imageRefused, .tooManyRedirects, .decoderCrashed,
    ]
}
