extension ImageCache {
    /// Puts a verified image where images are kept. Into the directory a body that has gone to a file goes without a copy. Blocks.
    ///
    /// * `name`: that of `key`.
    func publish(
        _ body: ImageBody, _ record: CacheRecord, _ validators: HTTPValidators?, for name: CacheKey, forKey key: String,
        replacing: Bool, keepsValidators: Bool = false
    ) throws(WebImageError) {
        guard let store = configuration.diskStore else {
            try disk.storeBesideClearing(
                body, for: name, record: record, validators: validators, replacing: replacing,
                keepsValidators: keepsValidators)
            return
        }
        let keeps = keepsValidators || configuration.disk.keepsHTTPValidators
        try store.store(
            StoredImage(body: body, record: record, validators: keeps ? validators : nil), forKey: key)
    }

    /// Where an image is that was published; nil where the store has no files.
    func publishedPath(_ name: CacheKey, forKey key: String) -> String? {
        guard let store = configuration.diskStore else { return disk.cachePath(of: name) }
        return store.path(forKey: key)
    }

    /// Makes what was stored survive a power cut, as far as the configuration asks for it; a store of somebody else's does so by itself.
    func sync() throws(WebImageError) {
        if configuration.diskStore == nil { try disk.sync() }
    }

    /// What is known of an image for the next request.
    func validators(of found: FoundImage) -> HTTPValidators? {
        switch found.place {
        case .file(let entry): disk.validators(of: entry)
        case .stored(let image, _): image.validators
        }
    }

    /// Notes that the server still has this very image: it is as young as one that was fetched now.
    /// - Returns: false where it is not there any more.
    func renew(_ found: FoundImage, _ validators: HTTPValidators, forKey key: String) throws(WebImageError) -> Bool {
        switch found.place {
        case .file(let entry):
            guard try disk.isCurrent(entry) else { return false }
            try disk.renew(entry, validators: validators)
            return true
        case .stored(let image, _):
            guard let store = configuration.diskStore, store.contains(key), var record = image.record else {
                return false
            }
            record.storedAt = WallClock.seconds
            try store.describe(record: record, validators: validators, forKey: key)
            return true
        }
    }
}
