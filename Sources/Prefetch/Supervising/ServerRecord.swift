/// The owner of a cache's private server: `.prefetch/redis/redis.json`, for users and to find the socket; the lock is authoritative.
struct ServerRecord: Sendable, Equatable {
    var socket: String
    var host: String
    var owner: Int32
    var server: Int32

    var json: String {
        """
        {"v":1,"socket":\(Self.quoted(socket)),"host":\(Self.quoted(host)),"owner":\(owner),"server":\(server)}

        """
    }

    init(socket: String, host: String, owner: Int32, server: Int32) {
        self.socket = socket
        self.host = host
        self.owner = owner
        self.server = server
    }

    /// Parses ``json``, possibly with more fields; nil if it is invalid.
    init?(json: [UInt8]) {
        var rest = json[...]
        var texts: [String: String] = [:]
        var numbers: [String: Int32] = [:]
        guard Self.skip(UInt8(ascii: "{"), in: &rest) else { return nil }
        repeat {
            guard let name = Self.string(&rest), Self.skip(UInt8(ascii: ":"), in: &rest) else { return nil }
            if let text = Self.string(&rest) {
                texts[name] = text
            } else {
                let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
                guard let number = Int32(String(decoding: digits, as: UTF8.self)) else { return nil }
                numbers[name] = number
                rest = rest.dropFirst(digits.count)
            }
        } while Self.skip(UInt8(ascii: ","), in: &rest)
        guard Self.skip(UInt8(ascii: "}"), in: &rest), let socket = texts["socket"], let host = texts["host"],
            let owner = numbers["owner"], let server = numbers["server"]
        else { return nil }
        self.init(socket: socket, host: host, owner: owner, server: server)
    }

    private static func skip(_ byte: UInt8, in rest: inout ArraySlice<UInt8>) -> Bool {
        rest = rest.drop { $0 <= 32 }
        guard rest.first == byte else { return false }
        rest = rest.dropFirst().drop { $0 <= 32 }
        return true
    }

    private static func string(_ rest: inout ArraySlice<UInt8>) -> String? {
        guard rest.first == UInt8(ascii: "\"") else { return nil }
        var bytes: [UInt8] = []
        var position = rest.startIndex + 1
        while position < rest.endIndex, rest[position] != UInt8(ascii: "\"") {
            if rest[position] == UInt8(ascii: "\\") {
                position += 1
                guard position < rest.endIndex else { return nil }
                if rest[position] == UInt8(ascii: "u") {
                    let digits = rest[(position + 1)...].prefix(4)
                    // Only control characters are escaped this way.
                    guard let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) else { return nil }
                    bytes.append(code)
                    position += 5
                    continue
                }
            }
            bytes.append(rest[position])
            position += 1
        }
        guard position < rest.endIndex else { return nil }
        rest = rest[(position + 1)...]
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": out += "\\\(scalar)"
            case _ where scalar.value < 32:
                out += scalar.value < 16 ? "\\u000" : "\\u00"
                out += String(scalar.value, radix: 16)
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}
