internal import ObjectStore

/// What `--out` names.
package enum ShardAddress {
    /// Whether it is a bucket.
    package static func isBucket(_ address: String) -> Bool { S3Location.isAddress(address) }

    /// - Throws: `configuration` for an address of a bucket that is none.
    package static func check(_ address: String) throws(PrefetchError) {
        guard isBucket(address) else { return }
        do throws(S3Error) { _ = try S3Location(address) } catch { throw PrefetchError(error) }
    }

    /// Opens the place, and creates a folder with its parents.
    /// * `isPatient`: whether a bucket is asked again for minutes, and not for seconds; `notice`: called with a sentence before it is.
    /// - Throws: `cacheUnavailable` (73), `configuration` (78).
    static func open(
        _ address: String, isPatient: Bool = true, notice: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(PrefetchError) -> any ShardPlace {
        guard isBucket(address) else { return try ShardFolder.make(address) }
        return try ShardBucket(address, retries: isPatient ? .patient : .quick, notice: notice)
    }
}
