internal import FoundationEssentials
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import WebImage

/// The URLs of `demo` and their expected outcomes.
struct DemoPlan: Sendable {
    enum Behaviour: String, Sendable, CaseIterable {
        case image = "photos"
        /// An image after 0.3 to 0.8 s.
        case slow
        /// 503 with `Retry-After`, then an image.
        case heals
        case missing
        /// Closes the connection inside the body.
        case cut
        case loop
        case page
        /// Stalls in the middle of the body.
        case stalls
        case closed

        var outcome: PrefetchOutcome {
            switch self {
            case .image, .slow, .heals: .downloaded
            case .missing, .loop: .httpError
            case .cut: .truncated
            case .page: .badImage
            case .stalls: .timeout
            case .closed: .connect
            }
        }

        func allows(_ found: PrefetchOutcome?) -> Bool {
            found == outcome || outcome == .downloaded && found == .hit
        }
    }

    struct Entry: Sendable, Equatable {
        var behaviour: Behaviour
        var number: Int

        var kind: GeneratedImage.Kind { GeneratedImage.Kind.allCases[number % GeneratedImage.Kind.allCases.count] }

        var path: String {
            let digits = String(number)
            let name = String(repeating: "0", count: max(0, 5 - digits.count)) + digits
            return "/\(behaviour.rawValue)/\(name).\(behaviour.outcome.isSkipped ? "jpg" : kind.fileExtension)"
        }

        /// Without the origin's port, so that a second run finds its images in the cache.
        var url: String { "http://\(behaviour == .closed ? DemoPlan.closedHost : DemoPlan.host)\(path)" }
    }

    /// Names that no resolver knows (RFC 6761 section 6.5); the workers get their addresses by option.
    static let host = "demo.prefetch.example"
    static let closedHost = "closed.prefetch.example"
    /// The lower bound still includes every behaviour.
    static let counts = 100...100_000

    let entries: [Entry]

    /// Plans `count` URLs: 5 % missing, 2 % slow, 1 % cut, a few of every other behaviour, and the rest images.
    init(count: Int) {
        var rest = count
        func some(_ behaviour: Behaviour, _ count: Int) -> [Entry] {
            rest -= count
            return (0..<count).map { Entry(behaviour: behaviour, number: $0) }
        }
        // The slowest start first, so that the run does not wait for them alone at the end.
        let first = some(.stalls, 2)
        var others = some(.missing, count * 5 / 100) + some(.slow, count * 2 / 100) + some(.cut, count / 100)
        others += some(.loop, 2) + some(.page, 2) + some(.heals, 3) + some(.closed, 2)
        others += some(.image, rest)
        var random = SplitMix64(state: 1)
        others.shuffle(using: &random)
        entries = first + others
    }

    func count(of behaviour: Behaviour) -> Int { entries.count { $0.behaviour == behaviour } }

    var exampleURL: String { Entry(behaviour: .image, number: 0).url }

    /// Writes the list to the cache's folder of lists, where later commands on the batch find it.
    func writeList(cache: String) throws(PrefetchError) -> URLList {
        let folder = try ListFolder.make(inCache: cache)
        let path = "\(folder)/demo-\(entries.count).txt"
        let text = entries.map { $0.url + "\n" }.joined()
        do {
            try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw PrefetchError(
                .cacheUnavailable, "cannot write \(path)", hint: "choose a folder that this user may write: --cache DIR"
            )
        }
        return try URLList(path: path)
    }
}
