@testable import WebImage

/// A store that is at fault whatever it is asked.
struct BrokenStore: DiskImageStore {
    private var fault: WebImageError { WebImageError(.localFault, "broken") }

    func contains(_ key: String) -> Bool { false }
    func image(forKey key: String) throws(WebImageError) -> StoredImage? { throw fault }
    func store(_ image: StoredImage, forKey key: String) throws(WebImageError) { throw fault }
    func describe(record: CacheRecord, validators: HTTPValidators?, forKey key: String) throws(WebImageError) {
        throw fault
    }
    func remove(forKey key: String) throws(WebImageError) { throw fault }
    func removeAll() throws(WebImageError) -> Int { throw fault }
    func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? { throw fault }
    func diskUsage() throws(WebImageError) -> (count: Int, size: Int) { throw fault }
    func path(forKey key: String) -> String? { nil }
}
