extension ImageCachesManager {
    /// Finds an image in the caches' memories or on their disks (`queryImageForKey:options:context:cacheType:completion:`). What a cache found
    /// on its disk is in its memory afterwards.
    ///
    /// With `concurrent` this returns with the first image that comes, whichever priority its cache has, and the other caches are told to stop: one
    /// that is reading already goes on and keeps what it reads in its own memory.
    /// - Returns: the image and whether it was in memory or on disk; nil where no cache has it.
    /// - Throws: `cancelled` where the task is: with `serial` no further cache is asked, with `concurrent` at once; `localFault` where a cache
    ///   cannot be read and no other has the image.
    public func queryImage(
        forKey key: String
    ) async throws(WebImageError) -> (image: MemoryImage, cacheType: ImageCacheType)? {
        if configuration.queryOperationPolicy == .concurrent {
            for cache in caches(for: .concurrent) {
                if let image = cache.imageFromMemoryCache(forKey: key) { return (image, .memory) }
            }
        }
        return try await first(configuration.queryOperationPolicy) { cache throws(WebImageError) in
            try await cache.queryImage(forKey: key)
        }
    }

    /// Where an image is (`containsImageForKey:cacheType:completion:`): in the memory of a cache, on its disk, or `none`. As
    /// ``queryImage(forKey:)`` asks, by the policy for this; a task that is cancelled hears `none`.
    public func containsImage(forKey key: String) async -> ImageCacheType {
        if configuration.containsOperationPolicy == .concurrent {
            for cache in caches(for: .concurrent) where cache.memory?.contains(key) == true { return .memory }
        }
        let found = try? await first(configuration.containsOperationPolicy) { cache throws(WebImageError) in
            let type = await cache.containsImage(forKey: key)
            return type == .none ? nil : type
        }
        return found ?? .none
    }

    /// Verifies an image and stores it, in place of what is under its key (`storeImage:imageData:forKey:cacheType:completion:`). Each cache verifies it
    /// as its configuration says. Not cancelled halfway: every cache that the policy names gets it.
    /// - Parameters:
    ///   - data: the encoded bytes.
    ///   - key: a URL, or any other text.
    ///   - toDisk: false keeps it in memory alone.
    /// - Throws: as ``ImageCache/store(_:forKey:toDisk:)``, when every cache has been told: the error of the highest priority.
    public func store(_ data: [UInt8], forKey key: String, toDisk: Bool = true) async throws(WebImageError) {
        _ = try await each(configuration.storeOperationPolicy) { cache throws(WebImageError) in
            try await cache.store(data, forKey: key, toDisk: toDisk)
        }
    }

    /// Verifies an image and stores it on disk alone, otherwise as ``store(_:forKey:toDisk:)``.
    /// - Throws: `badImageData`, `localFault`.
    public func storeImageDataToDisk(_ data: [UInt8], forKey key: String) async throws(WebImageError) {
        _ = try await each(configuration.storeOperationPolicy) { cache throws(WebImageError) in
            try await cache.storeImageDataToDisk(data, forKey: key)
        }
    }

    /// Removes an image from memory and, by default, from the disk (`removeImageForKey:cacheType:completion:`). Not cancelled halfway.
    /// - Throws: `localFault`, when every cache has been told.
    public func removeImage(forKey key: String, fromDisk: Bool = true) async throws(WebImageError) {
        _ = try await each(configuration.removeOperationPolicy) { cache throws(WebImageError) in
            try await cache.removeImage(forKey: key, fromDisk: fromDisk)
        }
    }

    /// Removes every image from the memories (`clearWithCacheType:completion:`).
    public func clearMemory() {
        for cache in caches(for: configuration.clearOperationPolicy) { cache.clearMemory() }
    }

    /// Removes every image from the disks; the memories stay (`clearWithCacheType:completion:`).
    /// - Returns: how many.
    /// - Throws: `localFault`, when every cache has been told; `cancelled` where the task is, what was removed until then is gone.
    @discardableResult
    public func clearDisk() async throws(WebImageError) -> Int {
        try await each(configuration.clearOperationPolicy) { cache throws(WebImageError) in
            try await cache.clearDisk()
        }.reduce(0, +)
    }
}
