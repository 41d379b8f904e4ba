internal import Glibc

/// What a ``NameServer`` answers, hostile answers included.
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
        var id = question.id
        if hasWrongID { id[1] ^= 0xff }
        if let raw { return id + raw }
        var body: [UInt8] = []
        for record in records {
            body += Self.encoded(record.name)
            body += Self.bytes(record.type) + [0, 1]
            body += Self.bytes(UInt16(truncatingIfNeeded: record.ttl >> 16))
            body += Self.bytes(UInt16(truncatingIfNeeded: record.ttl))
            body += Self.bytes(UInt16(truncatingIfNeeded: record.data.count)) + record.data
        }
        let isCut = !question.isOverTCP && (isTruncated || 12 + question.echo.count + body.count > 512)
        let count = UInt16(truncatingIfNeeded: isCut ? 0 : records.count)
        var message = id + [0x81 | (isCut ? 2 : 0), 0x80 | code.rawValue, 0, 1]
        message += Self.bytes(count) + [0, 0, 0, 0]
        message += question.echo
        return isCut ? message : message + body
    }

    private static func bytes(_ number: UInt16) -> [UInt8] {
        [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)]
    }
}
