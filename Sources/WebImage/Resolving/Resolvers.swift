internal import Glibc

/// The resolvers to ask, a channel for each: those that were given, or those of resolv.conf(5). A query goes to the first that answers, its
/// repetition to another one. Used only on the downloader's thread.
final class Resolvers {
    private struct Server {
        let channel: NameChannel
        var answeredAt = -Double.infinity
    }

    /// Seconds between two checks of the file.
    private static let interval = 10.0
    private static let most = 8
    /// Seconds between two checks for queries whose time is over: c-ares would go through all of them to tell the next.
    private static let lateInterval = 0.1
    private let given: [String]
    private let file: String
    private let timeout: Double
    private let sockets: NameSockets
    private var servers: [Server] = []
    private var preferred = 0
    private var version = FileVersion.none
    private var nextReading = -Double.infinity
    /// When ``takeEnded(now:)`` is due without an event; infinity: never.
    private(set) var nextCheck = Double.infinity
    /// Queries for which there was no channel.
    private var unsent: [NameChannel.Query] = []

    /// * `given`: addresses with ports; empty: those of `file`, a resolv.conf(5).
    init(_ given: [String], file: String, timeout: Double, sockets: NameSockets) {
        self.given = Array(given.prefix(Self.most))
        self.file = file
        self.timeout = timeout
        self.sockets = sockets
    }

    var count: Int { servers.count }

    /// Asks a resolver; returns which one.
    /// * `last`: the one that was asked the same before: then another one, if there is one.
    func ask(_ name: String, _ family: AddressFamily, number: Int, after last: Int?, now: Double) -> Int {
        if servers.isEmpty { open() }
        nextCheck = min(nextCheck, now + Self.lateInterval)
        guard !servers.isEmpty else {
            unsent.append(NameChannel.Query(number, at: now, of: nil, .unanswered("out of memory")))
            return 0
        }
        let server = last == preferred ? (preferred + 1) % servers.count : preferred
        servers[server].channel.ask(name, family, number: number, now: now)
        return server
    }

    private func open() {
        version = FileVersion(of: file)
        preferred = 0
        let system = given.isEmpty ? NameChannel(server: nil, file: file, timeout: timeout, sockets: sockets) : nil
        let names = given.isEmpty ? Array((system?.servers ?? []).prefix(Self.most)) : given
        if let system, names.count < 2 {
            servers = [Server(channel: system)]
        } else {
            servers = names.compactMap { name in
                NameChannel(server: name, file: file, timeout: timeout, sockets: sockets).map { Server(channel: $0) }
            }
        }
    }

    /// Receives what has arrived, and returns the queries that have ended.
    func takeEnded(now: Double) -> [NameChannel.Query] {
        for ready in sockets.takeReady() {
            for server in servers { server.channel.process(ready) }
        }
        var all = unsent
        unsent = []
        let checks = now >= nextCheck
        if checks { nextCheck = .infinity }
        for index in servers.indices {
            if checks { servers[index].channel.endLate() }
            let ended = servers[index].channel.takeEnded()
            for query in ended { note(query, of: index, now: now) }
            all += ended
            if servers[index].channel.inFlight > 0 { nextCheck = min(nextCheck, now + Self.lateInterval) }
        }
        return all
    }

    private func note(_ query: NameChannel.Query, of server: Int, now: Double) {
        if case .unanswered = query.reply {
            didNotAnswer(server, since: query.began)
        } else {
            servers[server].answeredAt = now
        }
    }

    /// Turns to the next resolver if one has answered nothing since a query was sent to it.
    func didNotAnswer(_ server: Int, since began: Double) {
        guard server == preferred, servers.indices.contains(server), servers[server].answeredAt < began else { return }
        preferred = (preferred + 1) % servers.count
    }

    /// Reads resolv.conf again if it has changed; looks at it every ten seconds at most. Then every query has been withdrawn.
    func renew(now: Double) -> Bool {
        guard given.isEmpty, now >= nextReading else { return false }
        nextReading = now + Self.interval
        guard !servers.isEmpty, FileVersion(of: file) != version else { return false }
        servers = []
        return true
    }
}
