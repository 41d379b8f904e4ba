internal import Glibc

extension DiskCache {
    /// Visits every image with its file and its record, in the order of the keys, until `visit` returns false. Files that come or go
    /// meanwhile may be visited or not; nothing is changed or moved. In constant memory.
    ///
    /// * `unreadable`: hears of what has an image's name and is none that can be read, with the system's words.
    /// - Throws: `localFault` where the cache itself cannot be read.
    package func forEachEntry(
        unreadable: (_ path: String, _ reason: String) -> Void, _ visit: (CacheEntry) -> Bool
    ) throws(WebImageError) {
        var isOver = false
        do throws(WebImageError) {
            try walk { key, _, _ throws(WebImageError) in
                let entry: CacheEntry?
                do throws(WebImageError) { entry = try examined(key, level: .none) } catch {
                    unreadable("\(directory)/\(key.path)", error.message)
                    return
                }
                guard let entry, !visit(entry) else { return }
                isOver = true
                throw WebImageError(.cancelled, "enough of the cache was seen")
            }
        } catch {
            if !isOver { throw error }
        }
    }
}

extension CacheEntry {
    /// What the file takes of the disk, in bytes: less than its size where it has holes, more where it does not fill its last block.
    package var allocatedSize: Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_blocks) * 512 : 0
    }
}
