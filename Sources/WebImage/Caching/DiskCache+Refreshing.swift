internal import Glibc

extension DiskCache {
    /// Notes that the server was asked and still has this very image: the file's dates become now, so that it is as young as one that was
    /// fetched now, and what the server said this time of its validators and freshness is written down.
    ///
    /// Nobody but the owner may do either; then the file stays as it is and is asked for again the next time.
    /// - Throws: `localFault` where a record's own file cannot be written.
    package func renew(_ entry: CacheEntry, validators: HTTPValidators) throws(WebImageError) {
        guard !configuration.isReadOnly, !entry.isElsewhere else { return }
        // No times: both become now (futimens(3)).
        futimens(entry.descriptor, nil)
        guard self.validators(of: entry) != validators else { return }
        if current.attributes {
            let code = replaceAttribute(Self.validatorsAttribute, validators.encoded, of: entry)
            if code == 0 || code == EACCES || code == EPERM || code == EROFS { return }
            guard lacksAttributes(code) else { throw fault("write a record", code: code) }
        }
        guard let record = entry.record else { return }
        _ = try rewriteSidecar(record.encoded, of: entry, isLocked: false) { validators }
    }

    /// Whether a name still is the name of an entry's file: somebody may have removed or replaced it since it was looked up.
    package func isCurrent(_ entry: CacheEntry) throws(WebImageError) -> Bool {
        if entry.isElsewhere { return true }
        return try lookup(entry.key, atLeast: .none)?.inode == entry.inode
    }
}
