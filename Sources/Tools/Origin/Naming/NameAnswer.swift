internal import Glibc

/// What a ``OriginResolver`` answers, hostile answers included.
package struct NameAnswer: Sendable {
    package struct Record: Sendable {
        var name: String
        var type: UInt16
        var ttl: UInt32
        var data: [UInt8]

        /// An A or AAAA record.
        package static func address(_ text: String, of name: String, ttl: UInt32 = 300) -> Record? {
            var bytes = [UInt8](repeating: 0, count: 16)
            if inet_pton(AF_INET, text, &bytes) == 1 {
                return Record(name: name, type: NameQuestion.v4, ttl: ttl, data: Array(bytes[..<4]))
            }
            guard inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
            return Record(name: name, type: NameQuestion.v6, ttl: ttl, data: bytes)
        }

        package static func alias(_ target: String, of name: String, ttl: UInt32 = 300) -> Record {
            Record(name: name, type: 5, ttl: ttl, data: NameAnswer.encoded(target))
        }
    }

    /// RFC 1035, section 4.1.1.
    package enum Code: UInt8, Sendable {
        case none = 0, formatError, serverFailure, noName, notImplemented, refused
    }

    package var code = Code.none
    package var records: [Record] = []
    /// No answer at all.
    package var isSilent = false
    /// Seconds until it is sent.
    package var delay = 0.0
    /// With the identifier of another query.
    package var hasWrongID = false
    /// Marked as truncated over UDP, without records.
    package var isTruncated = false
    /// Sent in place of an answer, after the identifier.
    package var raw: [UInt8]?

    package init(_ code: Code = .none, records: [Record] = []) {
        self.code = code
        self.records = records
    }

    /// The addresses that are of the question's family.
    package static func addresses(_ texts: [String], to question: NameQuestion, ttl: UInt32 = 300) -> NameAnswer {
        NameAnswer(
            records: texts.compactMap { Record.address($0, of: question.name, ttl: ttl) }
                .filter { $0.type == question.type })
    }

    package static let silence: NameAnswer = {
        var answer = NameAnswer()
        answer.isSilent = true
        return answer
    }()

    static func encoded(_ name: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for label in name.split(separator: ".") {
            bytes += [UInt8(truncatingIfNeeded: label.utf8.count)] + Array(label.utf8)
        }
        return bytes + [0]
    }

    /// The message; over UDP an answer of more than 512 bytes is truncated.
    func message(to question: NameQuestion) -> [UInt8] {
        let id = (question.id.0, hasWrongID ? ~question.id.1 : question.id.1)
        if let raw { return [id.0, id.1] + raw }
        let count = UInt16(truncatingIfNeeded: records.count)
        var message = [
            id.0, id.1, 0x81, 0x80 | code.rawValue, 0, 1, UInt8(count >> 8), UInt8(truncatingIfNeeded: count), 0, 0, 0,
            0,
        ]
        message.reserveCapacity(128)
        message += question.echo
        let end = message.count
        for record in records {
            // The name of the question is repeated by its place (RFC 1035, section 4.1.4).
            message += record.name == question.name ? [0xc0, 0x0c] : Self.encoded(record.name)
            Self.append(record.type, to: &message)
            message += [0, 1]
            Self.append(UInt16(truncatingIfNeeded: record.ttl >> 16), to: &message)
            Self.append(UInt16(truncatingIfNeeded: record.ttl), to: &message)
            Self.append(UInt16(truncatingIfNeeded: record.data.count), to: &message)
            message += record.data
        }
        if !question.isOverTCP && (isTruncated || message.count > 512) {
            message.removeSubrange(end...)
            message[2] |= 2
            (message[6], message[7]) = (0, 0)
        }
        return message
    }

    private static func append(_ number: UInt16, to message: inout [UInt8]) {
        message.append(UInt8(number >> 8))
        message.append(UInt8(truncatingIfNeeded: number))
    }
}
