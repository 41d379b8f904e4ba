import Glibc
import Threading

@testable import WebImage

/// Images in a dictionary, in place of a disk.
final class DictionaryStore: DiskImageStore {
    struct Kept {
        var image: StoredImage
        var date: Int
    }

    /// What there is, as a test may look at it and spoil it.
    let kept = Locked<[String: Kept]>([:])
    /// How often each method was called.
    let calls = Locked<[String: Int]>([:])
    /// What it answers as soon as it is to keep something; nil: it works.
    let fault = Locked<WebImageError?>(nil)

    private func count(_ call: String) { calls.withLock { $0[call, default: 0] += 1 } }

    func contains(_ key: String) -> Bool { kept.withLock { $0[key] != nil } }

    func image(forKey key: String) throws(WebImageError) -> StoredImage? {
        count("image")
        return kept.withLock { $0[key]?.image }
    }

    func store(_ image: StoredImage, forKey key: String) throws(WebImageError) {
        count("store")
        if let fault = fault.withLock({ $0 }) { throw fault }
        // Nothing of the body's file is left when the body goes.
        let bytes = try image.body.withUnsafeBytes { bytes throws(WebImageError) in Array(bytes) }
        var image = image
        image.body = ImageBody(bytes)
        kept.withLock { [image] in $0[key] = Kept(image: image, date: time(nil)) }
    }

    func describe(record: CacheRecord, validators: HTTPValidators?, forKey key: String) throws(WebImageError) {
        count("describe")
        kept.withLock { kept in
            kept[key]?.image.record = record
            kept[key]?.image.validators = validators
            kept[key]?.date = record.storedAt
        }
    }

    func remove(forKey key: String) throws(WebImageError) {
        count("remove")
        kept.withLock { $0[key] = nil }
    }

    func removeAll() throws(WebImageError) -> Int {
        kept.withLock { kept in
            defer { kept = [:] }
            return kept.count
        }
    }

    func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? {
        kept.withLock { kept in
            var report = SweepReport()
            let limit = age.map { Double(time(nil)) - $0 }
            func total() -> Int { kept.values.reduce(0) { $0 + $1.image.body.count } }
            for (key, entry) in kept.sorted(by: { $0.value.date < $1.value.date }) {
                let isExpired = limit.map { Double(entry.date) <= $0 } ?? false
                let isExcess =
                    !isExpired && size.map { total() > $0 || (report.evicted.count > 0 && total() >= $0 / 2) } ?? false
                guard isExpired || isExcess else { continue }
                kept[key] = nil
                if isExpired { report.expired.count += 1 } else { report.evicted.count += 1 }
            }
            (report.remaining.count, report.remaining.size) = (kept.count, total())
            return report
        }
    }

    func diskUsage() throws(WebImageError) -> (count: Int, size: Int) {
        kept.withLock { kept in (kept.count, kept.values.reduce(0) { $0 + $1.image.body.count }) }
    }

    func path(forKey key: String) -> String? { nil }
}
