internal import Prefetch
internal import WebImage

/// Hosts that give no answer or asked for back-off, in words.
enum HostText {
    /// The most that are named.
    private static let most = 10

    /// A line for each; none where all is well.
    static func lines(_ hosts: [HostProblem]) -> [String] {
        var lines = hosts.prefix(most).map(line)
        if hosts.count > most { lines.append("and \(Wording.count(hosts.count - most)) other hosts") }
        return lines
    }

    private static func line(_ host: HostProblem) -> String {
        let name = TerminalText.escaped(host.host)
        let reason = TerminalText.escaped(host.reason)
        let next = host.remaining > 0 ? "next request in \(Wording.seconds(host.remaining))" : "next request now"
        return switch host.state {
        case .silent:
            "host \(name) gives no answer, \(Wording.count(host.failures)) failures in a row (\(reason)); its URLs are waiting, \(next)"
        case .slow:
            "host \(name) answers slowly (\(reason)); at most \(Wording.count(host.failures)) of its URLs at once a worker"
        case .busy, .good: "host \(name) asked for back-off (\(reason)); its URLs are waiting, \(next)"
        }
    }
}
