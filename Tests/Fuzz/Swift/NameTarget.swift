import Glibc
import Threading

@testable import WebImage

extension FuzzTarget {
    /// A resolver on this machine that answers each query with what it is given.
    private final class Resolver {
        let socket: Int32
        let port: Int

        init() {
            let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var place = sockaddr_in()
            place.sin_family = sa_family_t(AF_INET)
            place.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutableBytes(of: &place) { place in
                let address = place.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                _ = bind(socket, address, length)
                _ = getsockname(socket, address, &length)
            }
            self.socket = socket
            port = Int(UInt16(bigEndian: place.sin_port))
        }

        deinit { close(socket) }

        /// Takes a query, and answers with its number and question where the answer is to have them.
        func answer(_ bytes: [UInt8], hasQuestion: Bool) -> Bool {
            var query = [UInt8](repeating: 0, count: 512)
            var from = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            return withUnsafeMutableBytes(of: &from) { from in
                let address = from.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                let count = recvfrom(socket, &query, query.count, Int32(MSG_DONTWAIT), address, &length)
                guard count >= 12 else { return false }
                var reply = bytes
                if reply.count >= 2 { reply.replaceSubrange(0..<2, with: query[..<2]) }
                if hasQuestion, reply.count >= 12 {
                    // The header's counts are the answer's own.
                    reply.insert(contentsOf: query[12..<count], at: 12)
                }
                return sendto(socket, reply, reply.count, 0, address, length) == reply.count
            }
        }
    }

    private nonisolated(unsafe) static let resolver = Resolver()

    /// The first byte: which family is asked for, and whether the question is put in front of the records.
    static func readNames(_ input: [UInt8]) throws {
        guard let choice = input.first, input.count > 12, let epoll = Epoll() else { return }
        let sockets = NameSockets(epoll)
        guard
            let channel = NameChannel(
                server: "127.0.0.1:\(resolver.port)", file: "/dev/null", timeout: 0.001, sockets: sockets)
        else { return }
        channel.ask("host.test", choice & 1 == 0 ? .v4 : .v6, number: 1, now: 0)
        var rounds = 0
        while channel.inFlight > 0, rounds < 3 {
            rounds += 1
            while resolver.answer(Array(input.dropFirst()), hasQuestion: choice & 2 != 0) {}
            let events = epoll.wait(milliseconds: 0)
            for index in 0..<events { if let event = epoll.event(index) { _ = sockets.take(event) } }
            for ready in sockets.takeReady() { channel.process(ready) }
            channel.endLate()
        }
        for query in channel.takeEnded() {
            guard case .addresses(let addresses, let lifetime) = query.reply else { continue }
            try claim((1...NameChannel.mostAddresses).contains(addresses.count), "\(addresses.count) addresses")
            try claim(lifetime >= 0 && lifetime <= Double(Int32.max), "a lifetime of \(lifetime) s")
            try claim(Set(addresses).count == addresses.count, "an address twice")
        }
    }
}
