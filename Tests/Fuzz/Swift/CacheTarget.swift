@testable import WebImage

extension FuzzTarget {
    /// An attribute of a file: its record, its validators, or the file with both.
    static func readRecord(_ bytes: [UInt8]) throws {
        let key = CacheKey("http://host.test/")
        for part in [bytes, Array(bytes.prefix(CacheRecord.encodedLength))] {
            _ = CacheRecord.belongs(part, to: key)
            _ = CacheRecord.describes(part, file: 7)
            guard let record = CacheRecord(part) else { continue }
            try claim(record.length >= 0 && record.length <= Plausible.largestImage, "a length of \(record.length)")
            try claim(record.frameCount >= 1 && record.width >= 0 && record.height >= 0, "a size that is none")
            try claim((1...8).contains(record.orientation.rawValue), "an orientation that is none")
            try claim(CacheRecord(record.encoded) == record, "a record that is not read back: \(record)")
            let encoded = record.encoded(for: key, file: 7)
            try claim(CacheRecord.belongs(encoded, to: key) && CacheRecord.describes(encoded, file: 7), "another file")
            _ = record.info
        }
        guard let validators = HTTPValidators(bytes) else { return }
        let fields = [validators.etag, validators.lastModified].compactMap { $0?.utf8.count }
        guard fields.allSatisfy({ $0 <= HTTPValidators.limit }) else { return }
        try claim(HTTPValidators(validators.encoded) == validators, "validators that are not read back: \(validators)")
        for condition in validators.conditions { try claim(condition.isValid, "a header that may not be sent") }
    }
}
