/// Tells whether a connect was refused because there are too many connections, and not because nothing listens: a router or a server that
/// limits them may answer with RST. Then another try later, when some have ended, is likely to succeed. Used only on the downloader's thread;
/// the caller passes the time.
final class RefusedConnects {
    /// Hosts that refused a connect and have not answered since.
    private var refused: [ByteText: Double] = [:]
    /// Hosts that refused a connect although they have connections, or that answered a moment after it.
    private var limited: [ByteText: Double] = [:]

    /// Seconds for which either counts, and so many hosts that it is the way to all of them.
    private static let (memory, several) = (30.0, 3)
    private static let most = 4_096

    /// Records a refused connect; returns whether too many connections are the likely cause.
    /// * `isConnected`: whether its host has connections.
    func add(_ host: String, isConnected: Bool, now: Double) -> Bool {
        if isConnected {
            Self.note(host, in: &limited, now)
            return true
        }
        Self.note(host, in: &refused, now)
        guard limited.count >= Self.several else { return false }
        limited = limited.filter { now - $0.value < Self.memory }
        return limited.count >= Self.several
    }

    func didAnswer(_ host: String, now: Double) {
        // Mostly there are none, and a look-up by name is not free.
        guard !refused.isEmpty, let at = refused.removeValue(forKey: ByteText(host)), now - at < Self.memory else {
            return
        }
        Self.note(host, in: &limited, now)
    }

    private static func note(_ host: String, in hosts: inout [ByteText: Double], _ now: Double) {
        if hosts.count >= most { hosts = [:] }
        hosts[ByteText(host)] = now
    }
}
