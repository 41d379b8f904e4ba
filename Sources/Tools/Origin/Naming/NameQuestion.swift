/// A question to a ``OriginResolver`` (RFC 1035, section 4.1.2).
package struct NameQuestion: Sendable {
    package static let v4: UInt16 = 1, v6: UInt16 = 28
    /// In lower case, without the final dot.
    package var name: String
    package var type: UInt16
    package var isOverTCP = false
    /// 1 for the first query for this name and type.
    package var number = 0

    let id: (UInt8, UInt8)
    /// Its bytes as an answer repeats them.
    package let echo: ArraySlice<UInt8>

    /// Nil for anything but a query with one question.
    init?(message: [UInt8]) {
        guard message.count > 12, message[2] & 0x80 == 0, message[4] == 0, message[5] == 1 else { return nil }
        var text: [UInt8] = []
        var place = 12
        while place < message.count, message[place] > 0 {
            let end = place + 1 + Int(message[place])
            guard message[place] < 64, end < message.count else { return nil }
            if !text.isEmpty { text.append(UInt8(ascii: ".")) }
            text += message[place + 1..<end]
            place = end
        }
        guard place + 5 <= message.count else { return nil }
        name = String(decoding: text.map(Self.lowercase), as: UTF8.self)
        type = UInt16(message[place + 1]) << 8 | UInt16(message[place + 2])
        id = (message[0], message[1])
        echo = message[12..<place + 5]
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
