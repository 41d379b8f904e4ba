internal import FoundationEssentials
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import WebImage

/// What `demo` asks for: every URL, and how it has to end.
struct DemoPlan: Sendable {
    /// What the origin does with a URL.
    enum Behaviour: String, Sendable, CaseIterable {
        /// An image at once.
        case image = "photos"
        /// An image after 0.2 to 0.5 s.
        case slow
        /// 503 with `Retry-After`, then an image; on a host of its own, because all of a host is in back-off for that long.
        case heals
        /// 404.
        case missing
        /// Ends the connection inside the body.
        case cut
        /// A redirect to itself.
        case loop
        /// HTML under the name of a JPEG.
        case page
        /// Says nothing more in the middle of the body.
        case stalls
        /// Nobody listens.
        case closed

        /// How such a URL ends.
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

        /// Whether a URL that ended so ended as expected: what the cache had already is as good as what was downloaded.
        func allows(_ found: PrefetchOutcome?) -> Bool {
            found == outcome || outcome == .downloaded && found == .hit
        }
    }

    /// One line of the list.
    struct Entry: Sendable, Equatable {
        var behaviour: Behaviour
        /// From 0 on, among those of its behaviour.
        var number: Int

        /// Which of the distinct images it is, where it is one.
        var kind: GeneratedImage.Kind { DemoPlan.kinds[number % DemoPlan.kinds.count] }

        var path: String {
            let digits = String(number)
            let name = String(repeating: "0", count: max(0, 5 - digits.count)) + digits
            return "/\(behaviour.rawValue)/\(name).\(behaviour.outcome.isSkipped ? "jpg" : kind.fileExtension)"
        }

        /// The same in every run, so that a second one finds its images in the cache; the origin's port is not in it.
        var url: String { "http://\(host)\(path)" }

        private var host: String {
            switch behaviour {
            case .closed: DemoPlan.closedHost
            case .heals: DemoPlan.busyHost
            default: DemoPlan.host
            }
        }
    }

    /// The images of a demo, of formats that can be verified here: libwebp is loaded if it is installed.
    static let kinds = kinds(hasWebP: ImageCoder.canDecode(.webp))

    static func kinds(hasWebP: Bool) -> [GeneratedImage.Kind] {
        GeneratedImage.Kind.allCases.filter { hasWebP || $0 != .webp }
    }

    /// Names that no resolver knows (RFC 6761 section 6.5); the workers are told where they are.
    static let host = "demo.prefetch.example"
    static let busyHost = "busy.prefetch.example"
    static let closedHost = "closed.prefetch.example"
    /// The least that has each behaviour in its share.
    static let counts = 100...100_000

    /// In the order of the list.
    let entries: [Entry]

    /// So many URLs: 5 % missing, 2 % slow, 1 % cut, a few of each other behaviour, and the rest images.
    init(count: Int) {
        var rest = count
        func some(_ behaviour: Behaviour, _ count: Int) -> [Entry] {
            rest -= count
            return (0..<count).map { Entry(behaviour: behaviour, number: $0) }
        }
        // What takes longest begins first, so that nothing waits for it alone at the end.
        let first = some(.stalls, 2)
        var others = some(.missing, count * 5 / 100) + some(.slow, count * 2 / 100) + some(.cut, count / 100)
        others += some(.loop, 2) + some(.page, 2) + some(.heals, 3) + some(.closed, 2)
        others += some(.image, rest)
        var random = SplitMix64(state: 1)
        others.shuffle(using: &random)
        entries = first + others
    }

    /// How many URLs have a behaviour.
    func count(of behaviour: Behaviour) -> Int { entries.count { $0.behaviour == behaviour } }

    /// A URL whose image is in the cache afterwards.
    var exampleURL: String { Entry(behaviour: .image, number: 0).url }

    /// Puts the list with the state of a cache's runs, where later commands find it.
    func writeList(cache: String) throws(PrefetchError) -> ListStream {
        let folder = try RunState.open(cache, in: StateOption.folder(nil)).lists()
        let path = "\(folder)/demo-\(entries.count).txt"
        let text = entries.map { $0.url + "\n" }.joined()
        do {
            try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw PrefetchError(
                .cacheUnavailable, "cannot write \(path)", hint: "choose a folder that this user may write: --cache DIR"
            )
        }
        let list = try ListStream([path])
        try list.keep(in: folder)
        return list
    }
}
