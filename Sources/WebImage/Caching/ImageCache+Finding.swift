internal import Threading

// What a manager does with images beyond the memory, wherever they are kept. All of it blocks.
extension ImageCache {
    /// What there is under a key, verified. What passed less than `level` is verified now, and raised or taken out of the way. What cannot be
    /// verified stays, and is found only where such images are kept.
    func find(
        _ key: String, atLeast level: ValidationLevel, unverifiable: UnverifiableFormats = .skip, coder: ImageCoder
    ) throws(WebImageError) -> FoundImage? {
        if let store = configuration.diskStore { return try find(key, in: store, level, unverifiable, coder) }
        guard let entry = try disk.lookup(forKey: key, atLeast: level) else { return nil }
        if !entry.needsVerification, let record = entry.record {
            return FoundImage(place: .file(entry), info: ImageInfo(record), bytes: nil)
        }
        let call = disk.calls.begin()
        let read = Result { () throws(WebImageError) in try entry.bytes() }
        disk.calls.end(call)
        let bytes = try read.get()
        let info: ImageInfo
        do throws(WebImageError) {
            info = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try coder.verify(bytes, level: level, unverifiable: unverifiable)
            }
        } catch {
            if error.code == .localFault { throw error }
            guard error.code == .badImageData else { return nil }
            disk.moveAside(entry)
            return nil
        }
        // What was kept although it cannot be verified passes no more than before.
        if entry.record.map({ $0.level < info.level }) ?? true { _ = try disk.raise(entry, to: info) }
        return FoundImage(place: .file(entry), info: info, bytes: bytes)
    }

    /// The record says what somebody's store kept: it counts for the bytes that have its digest, and those are read in any case.
    func find(
        _ key: String, in store: any DiskImageStore, _ level: ValidationLevel,
        _ unverifiable: UnverifiableFormats, _ coder: ImageCoder
    ) throws(WebImageError) -> FoundImage? {
        guard var image = try store.image(forKey: key) else { return nil }
        let (body, record) = (image.body, image.record)
        do throws(WebImageError) {
            let (info, digest) = try body.withUnsafeBytes { bytes throws(WebImageError) in
                let digest = record?.digest == nil ? nil : SHA256.hash(bytes)
                guard (record?.length ?? bytes.count) == bytes.count, record?.digest == digest else {
                    throw WebImageError(.badImageData, "other bytes than those that were stored")
                }
                if let record, digest != nil, record.level >= level { return (ImageInfo(record), digest) }
                return (try coder.verify(bytes, level: level, unverifiable: unverifiable), digest)
            }
            if (record?.level ?? .none) < info.level {
                image.record = CacheRecord(
                    info, length: body.count, digest: digest, storedAt: record?.storedAt ?? WallClock.seconds)
                if let record = image.record {
                    try store.describe(record: record, validators: image.validators, forKey: key)
                }
            }
            return FoundImage(place: .stored(image, path: store.path(forKey: key)), info: info, bytes: nil)
        } catch {
            if error.code == .localFault { throw error }
            guard error.code == .badImageData else { return nil }
            try store.remove(forKey: key)
            return nil
        }
    }

    /// Reads what was found; nil where somebody has cut the file short, which is taken out of the way.
    func memoryImage(of found: FoundImage, _ key: String) throws(WebImageError) -> MemoryImage? {
        let bytes = try found.read()
        guard bytes.count == found.size else {
            try discard(found, key)
            return nil
        }
        return MemoryImage(bytes: bytes, info: found.info, digest: found.record?.digest)
    }

    /// Takes a damaged image out of the way: from now on it is a miss.
    func discard(_ found: FoundImage, _ key: String) throws(WebImageError) {
        switch found.place {
        case .file(let entry): disk.moveAside(entry)
        case .stored: try configuration.diskStore?.remove(forKey: key)
        }
    }

    /// Whether there is an image that passed at least this level, by its record alone.
    func has(_ key: String, atLeast level: ValidationLevel) throws(WebImageError) -> Bool {
        guard let store = configuration.diskStore else {
            return try disk.lookup(forKey: key, atLeast: level).map { !$0.needsVerification } ?? false
        }
        guard let record = try store.image(forKey: key)?.record else { return false }
        return record.digest != nil && record.level >= level
    }

    /// The digest of what is there, whatever state it is in.
    func digest(forKey key: String) throws(WebImageError) -> Digest? {
        guard let store = configuration.diskStore else {
            return try disk.lookup(forKey: key, atLeast: .none)?.knownDigest()
        }
        return try store.image(forKey: key)?.body.withUnsafeBytes { bytes throws(WebImageError) in
            SHA256.hash(bytes)
        }
    }

    /// Where the image of a key is; nil where there is none, or none in a file.
    func existingPath(forKey key: String) -> String? {
        guard let store = configuration.diskStore else { return disk.existingPath(forKey: key) }
        return store.contains(key) ? store.path(forKey: key) : nil
    }
}

extension ImageInfo {
    /// What a record says.
    fileprivate init(_ record: CacheRecord) {
        self.init(format: record.format, width: record.width, height: record.height, level: record.level)
    }
}
