internal import CCares
internal import Glibc

/// A c-ares channel to one resolver. Used only on the downloader's thread.
///
/// c-ares ends each query exactly once, possibly in the call that asks; its end is kept for ``takeEnded()``, so no caller is entered again.
final class NameChannel {
    /// A query, which c-ares holds until it has ended.
    final class Query {
        let number: Int
        /// When it was sent.
        let began: Double
        /// Nil if it was not sent.
        fileprivate unowned let channel: NameChannel?
        fileprivate(set) var reply: NameReply

        init(_ number: Int, at time: Double, of channel: NameChannel?, _ reply: NameReply = .withdrawn) {
            (self.number, began, self.channel, self.reply) = (number, time, channel, reply)
        }
    }

    /// The most addresses that are kept of an answer.
    static let mostAddresses = 64
    private let channel: OpaquePointer
    /// c-ares has it as its callback's context.
    private let sockets: NameSockets
    private var ended: [Query] = []
    private(set) var inFlight = 0

    /// * `server`: nil: the first one of `file`, or this machine if it names none.
    /// * `file`: a resolv.conf(5).
    /// * `timeout`: seconds until a query ends without an answer.
    /// Nil without memory.
    init?(server: String?, file: String, timeout: Double, sockets: NameSockets) {
        let context = Unmanaged.passUnretained(sockets).toOpaque()
        var path = Array(file.utf8CString)
        let opened = ccares_open(
            server, &path, Int32(timeout * 1000),
            { context, socket, reads, writes in
                Unmanaged<NameSockets>.fromOpaque(context!).takeUnretainedValue()
                    .watch(socket, reads: reads != 0, writes: writes != 0)
            }, context)
        guard let opened else { return nil }
        channel = opened
        self.sockets = sockets
    }

    deinit { ares_destroy(channel) }

    /// The resolvers that it was configured with.
    var servers: [String] {
        var servers: [String] = []
        var text = [CChar](repeating: 0, count: 96)
        while ccares_server(channel, Int32(servers.count), &text, text.count) {
            servers.append(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        return servers
    }

    /// Asks for the addresses of one family; ``takeEnded()`` returns the query when it has ended.
    func ask(_ name: String, _ family: AddressFamily, number: Int, now: Double) {
        let query = Unmanaged.passRetained(Query(number, at: now, of: self))
        inFlight += 1
        ccares_ask(
            channel, name, family == .v6 ? AF_INET6 : AF_INET,
            { context, status, _, answer in
                let query = Unmanaged<Query>.fromOpaque(context!).takeRetainedValue()
                query.reply = NameChannel.reply(status, answer)
                if let answer { ares_freeaddrinfo(answer) }
                // Otherwise it ends in deinit, which nobody observes.
                if query.reply != .withdrawn { query.channel?.didEnd(query) }
            }, query.toOpaque())
    }

    private func didEnd(_ query: Query) {
        inFlight -= 1
        ended.append(query)
    }

    /// Receives answers.
    func process(_ ready: NameSockets.Ready) {
        ares_process_fd(channel, ready.isReadable ? ready.socket : -1, ready.isWritable ? ready.socket : -1)
    }

    /// Ends the queries whose time is over.
    func endLate() { if inFlight > 0 { ares_process_fd(channel, -1, -1) } }

    func takeEnded() -> [Query] {
        guard !ended.isEmpty else { return [] }
        defer { ended = [] }
        return ended
    }

    private static func reply(_ status: Int32, _ answer: UnsafeMutablePointer<ares_addrinfo>?) -> NameReply {
        switch ccares_kind(status) {
        case CCARES_ADDRESSES: addresses(answer)
        case CCARES_NO_NAME: .noName
        case CCARES_NO_ADDRESS: .noAddress
        case CCARES_UNANSWERED: .unanswered(String(cString: ares_strerror(status)))
        case CCARES_WITHDRAWN: .withdrawn
        default: .failed(String(cString: ares_strerror(status)))
        }
    }

    private static func addresses(_ answer: UnsafeMutablePointer<ares_addrinfo>?) -> NameReply {
        var addresses: [IPAddress] = []
        var lifetime = Double.infinity
        var next = answer?.pointee.nodes
        while let node = next, addresses.count < mostAddresses {
            if let place = node.pointee.ai_addr, let address = IPAddress.parse(socketAddress: place)?.address,
                !addresses.contains(address)
            {
                addresses.append(address)
            }
            // TTLs beyond 2^31 - 1 count as 0 (RFC 2181, section 8).
            lifetime = min(lifetime, Double(max(0, node.pointee.ai_ttl)))
            next = node.pointee.ai_next
        }
        return addresses.isEmpty ? .noAddress : .addresses(addresses, lifetime: lifetime)
    }
}
