/// The record kept of every failure of a batch, also without its details: nine bytes for a run of neighbours that ended alike.
///
/// A field of the hash is a chunk of 256 indices. Its value is a row of entries, in any order: the first and the last position in the
/// chunk, one byte each; the HTTP status, two bytes; the tries, one byte; seconds since the batch was created, four bytes. Numbers are big
/// endian.
package struct FailureRecord: Sendable, Equatable {
    /// Nil without a response.
    package var httpStatus: Int?
    /// Requests made; 255 means 255 or more.
    package var tries: Int
    /// Seconds from the creation of the batch to the end of the URL; nil if unknown.
    package var seconds: Int?

    /// Indices per chunk, and bytes per entry.
    package static let chunk = 256
    static let size = 9

    package init(httpStatus: Int? = nil, tries: Int = 0, seconds: Int? = nil) {
        (self.httpStatus, self.tries, self.seconds) = (httpStatus, tries, seconds)
    }

    /// * `bytes`: of an entry, after the positions.
    private init(_ bytes: ArraySlice<UInt8>) {
        let number = bytes.map { Int($0) }
        let seconds = number[3] << 24 | number[4] << 16 | number[5] << 8 | number[6]
        let status = number[0] << 8 | number[1]
        self.init(
            httpStatus: status == 0 ? nil : status, tries: number[2],
            seconds: seconds == Int(UInt32.max) ? nil : seconds)
    }

    /// The records of a chunk by position. `isSound` is false if bytes are left over, or a position has two records.
    package static func decode(_ bytes: [UInt8]) -> (records: [Int: FailureRecord], isSound: Bool) {
        var records: [Int: FailureRecord] = [:]
        var isSound = bytes.count % size == 0
        for start in stride(from: 0, through: bytes.count - size, by: size) {
            let (first, last) = (Int(bytes[start]), Int(bytes[start + 1]))
            guard first <= last else {
                isSound = false
                continue
            }
            let record = FailureRecord(bytes[(start + 2)..<(start + size)])
            for position in first...last where records.updateValue(record, forKey: position) != nil { isSound = false }
        }
        return (records, isSound)
    }

    /// Entries for REPORT by position in the job, without the time, which Redis adds.
    static func entries(of settled: [SettledEntry]) -> [UInt8] {
        var bytes: [UInt8] = []
        var last: (position: Int, tail: [UInt8])?
        for item in settled.sorted(by: { $0.position < $1.position }) where item.outcome.isSkipped {
            let status = UInt16(clamping: item.failure?.httpStatus ?? 0)
            let tries = UInt8(clamping: item.failure?.tries ?? 0)
            let tail = [UInt8(status >> 8), UInt8(status & 255), tries]
            if let known = last, known.position + 1 == item.position, known.tail == tail {
                bytes[bytes.count - 4] = UInt8(item.position)
            } else {
                bytes += [UInt8(item.position), UInt8(item.position)] + tail
            }
            last = (item.position, tail)
        }
        return bytes
    }
}
