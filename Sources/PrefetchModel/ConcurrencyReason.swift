/// Why a worker with `auto` has its present number of transfers.
public enum ConcurrencyReason: String, Sendable, CaseIterable {
    /// Throughput grows with the number of transfers.
    case growing
    /// More transfers would bring nothing.
    case knee
    /// Measures whether fewer or more would do better.
    case probing
    /// Fewer transfers run than may: hosts, or what is left of the list, hold them.
    case unused
    /// Connections are refused or late, on several hosts.
    case connects
    /// Names are not resolved, on several hosts.
    case names
    /// Bodies are cut or stop, on several hosts.
    case bodies
    /// The processors have no time left.
    case processor
    /// The limit of open files allows no more.
    case descriptors
    /// The free memory allows no more.
    case memory
    /// The most that `auto` uses.
    case most

    /// For a person: `growing`, `backing off: connects fail`.
    public var text: String {
        switch self {
        case .growing: "growing"
        case .knee: "holding at the knee"
        case .probing: "probing"
        case .unused: "not used up"
        case .connects: "backing off: connects fail"
        case .names: "backing off: names fail"
        case .bodies: "backing off: bodies fail"
        case .processor: "bounded by the processors"
        case .descriptors: "bounded by descriptors"
        case .memory: "bounded by memory"
        case .most: "at the most"
        }
    }

    /// Whether failures across hosts have reduced it.
    public var isBackOff: Bool { self == .connects || self == .names || self == .bodies }
}
