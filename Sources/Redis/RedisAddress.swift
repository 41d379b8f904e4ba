internal import Glibc

/// An address on which the configured Redis listens, as discovered by a connection.
package struct RedisAddress: Sendable, Hashable {
    package enum Host: Sendable, Hashable {
        case named(String)
        /// Every address of this machine.
        case thisMachine
    }

    package var host: Host
    package var port: Int

    /// Nil for this machine as a whole.
    var name: String? {
        switch host {
        case .named(let name): name
        case .thisMachine: nil
        }
    }

    package init(_ host: Host, port: Int) {
        self.host = host
        self.port = port
    }

    /// The host and all addresses it resolves to. May block on DNS.
    static func all(of host: String, port: Int) -> Set<RedisAddress> {
        var places: Set<RedisAddress> = [RedisAddress(.named(host), port: port)]
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var first: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &first) == 0 else { return places }
        defer { freeaddrinfo(first) }
        var next = first
        while let entry = next {
            if let address = entry.pointee.ai_addr.flatMap({ text(of: $0, entry.pointee.ai_addrlen) }) {
                places.insert(RedisAddress(.named(address), port: port))
            }
            next = entry.pointee.ai_next
        }
        return places
    }

    /// The peer of a connected socket; empty for a Unix socket. A server on this machine usually listens on all of its addresses.
    static func peer(of descriptor: Int32) -> Set<RedisAddress> {
        guard let peer = end(of: descriptor, { getpeername($0, $1, $2) }),
            let own = end(of: descriptor, { getsockname($0, $1, $2) })
        else { return [] }
        var places: Set<RedisAddress> = [RedisAddress(.named(peer.address), port: peer.port)]
        if peer.address == own.address { places.insert(RedisAddress(.thisMachine, port: peer.port)) }
        return places
    }

    /// Parses `CLUSTER NODES`: `ID ADDRESS:PORT@BUS[,NAME] FLAGS ...`, bus ports included. A node without an address is at `own`.
    static func nodes(_ text: String, own: String?) -> Set<RedisAddress> {
        var places: Set<RedisAddress> = []
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split(separator: " ")
            guard words.count > 1 else { continue }
            let parts = words[1].split(separator: ",", omittingEmptySubsequences: false)
            guard let colon = parts[0].lastIndex(of: ":") else { continue }
            let ports = parts[0][parts[0].index(after: colon)...].split(separator: "@").compactMap { Int($0) }
            let hosts =
                [colon == parts[0].startIndex ? own : String(parts[0][..<colon])]
                + parts.dropFirst().prefix(1).map { String($0) }
            for host in hosts.compactMap({ $0 }) where !host.isEmpty && host != "?" {
                for port in ports where port > 0 { places.insert(RedisAddress(.named(host), port: port)) }
            }
        }
        return places
    }

    /// The listening ports from `INFO server`, without 0 and invalid ones.
    static func ports(info: String) -> Set<Int> {
        var ports: Set<Int> = []
        for line in info.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("tcp_port:") { Int(line.dropFirst(9)).map { _ = ports.insert($0) } }
            // Since 7.0: `listener0:name=tcp,bind=127.0.0.1,port=6379`.
            guard line.hasPrefix("listener"), let at = line.firstRange(of: ",port=") else { continue }
            Int(line[at.upperBound...].prefix { $0.isNumber }).map { _ = ports.insert($0) }
        }
        return ports.filter { (1...65_535).contains($0) }
    }

    private typealias Ask = (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32

    private static func end(of descriptor: Int32, _ ask: Ask) -> (address: String, port: Int)? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
                guard ask(descriptor, place, &length) == 0, let address = text(of: place, length) else { return nil }
                // Both address families have the port at the same offset (ip(7), ipv6(7)).
                let port = UnsafeRawPointer(place).loadUnaligned(fromByteOffset: 2, as: in_port_t.self)
                return (address, Int(in_port_t(bigEndian: port)))
            }
        }
    }

    /// Nil if neither IPv4 nor IPv6. Mapped IPv4 addresses become IPv4; zones are dropped.
    private static func text(of place: UnsafeMutablePointer<sockaddr>, _ length: socklen_t) -> String? {
        guard [AF_INET, AF_INET6].contains(Int32(place.pointee.sa_family)) else { return nil }
        var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        guard getnameinfo(place, length, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return String((text.hasPrefix("::ffff:") ? text.dropFirst(7) : text[...]).prefix { $0 != "%" })
    }
}
