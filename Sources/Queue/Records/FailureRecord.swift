/// What is kept of every failure of a batch, also where its details are not: nine bytes for a run of neighbours that ended alike.
///
/// A field of the hash is a chunk of 256 indices. Its value is a row of entries, in any order: the first and the last position in the
/// chunk, one byte each; the HTTP status, two bytes; the tries, one byte; seconds since the batch was made, four bytes. Numbers are big
/// endian.
package struct FailureRecord: Sendable, Equatable {
    /// The status code, where a response came.
    package var httpStatus: Int?
    /// Requests made; 255 is that many or more.
    package var attempts: Int
    /// Seconds from the making of the batch to the end of the URL; nil where that is not known any more.
    package var seconds: Int?

    /// Indices in a chunk, and bytes of an entry.
    package static let chunk = 256
    static let size = 9

    package init(httpStatus: Int? = nil, attempts: Int = 0, seconds: Int? = nil) {
        (self.httpStatus, self.attempts, self.seconds) = (httpStatus, attempts, seconds)
    }

    /// * `bytes`: of an entry, behind the positions.
    private init(_ bytes: ArraySlice<UInt8>) {
        let number = bytes.map { Int($0) }
        let seconds = number[3] << 24 | number[4] << 16 | number[5] << 8 | number[6]
        let status = number[0] << 8 | number[1]
        self.init(
            httpStatus: status == 0 ? nil : status, attempts: number[2],
            seconds: seconds == Int(UInt32.max) ? nil : seconds)
    }

    /// The records of a chunk by position. `isSound` is false where bytes are left over, or a position has two.
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

    /// What REPORT gets of a job: entries without the time, which Redis has, by position in the job.
    static func entries(of settled: [SettledEntry]) -> [UInt8] {
        var bytes: [UInt8] = []
        var last: (position: Int, tail: [UInt8])?
        for item in settled.sorted(by: { $0.position < $1.position }) where item.outcome.isSkipped {
            let status = UInt16(clamping: item.failure?.httpStatus ?? 0)
            let attempts = UInt8(clamping: item.failure?.attempts ?? 0)
            let tail = [UInt8(status >> 8), UInt8(status & 255), attempts]
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
