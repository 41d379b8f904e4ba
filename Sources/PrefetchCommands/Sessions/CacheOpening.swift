internal import Glibc
package import Prefetch
package import WebImage

package enum CacheOpening {
    /// For writing; created if missing; error 73 if that fails.
    package static func forWriting(
        _ folder: String, _ configuration: DiskCache.Configuration = DiskCache.Configuration()
    ) throws(PrefetchError) -> DiskCache {
        do throws(WebImageError) {
            return try DiskCache(directory: folder, configuration: configuration)
        } catch {
            if error.code == .invalidConfiguration { throw PrefetchError(.configuration, error.message) }
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "choose a folder that this user may write: --cache DIR")
        }
    }

    /// Read-only; error 66 if there is none.
    static func forReading(_ folder: String, _ readOnly: [String] = []) throws(PrefetchError) -> DiskCache {
        guard access(folder, F_OK) == 0 else {
            throw PrefetchError(.notFound, "there is no folder \(folder)", hint: "name the cache: --cache DIR")
        }
        var configuration = DiskCache.Configuration()
        configuration.isReadOnly = true
        configuration.readOnlyDirectories = readOnly
        do throws(WebImageError) {
            return try DiskCache(directory: folder, configuration: configuration)
        } catch {
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "name a cache that this user may read: --cache DIR")
        }
    }
}

/// A cache that a command was given, which may be open already.
enum NamedCache: Sendable {
    case folder(String)
    case open(DiskCache)

    /// - Throws: as ``CacheOpening/forWriting(_:_:)``.
    func forWriting() throws(PrefetchError) -> DiskCache {
        switch self {
        case .folder(let path): try CacheOpening.forWriting(path)
        case .open(let disk): disk
        }
    }

    /// - Throws: as ``CacheOpening/forReading(_:_:)``.
    func forReading(_ readOnly: [String]) throws(PrefetchError) -> DiskCache {
        switch self {
        case .folder(let path): try CacheOpening.forReading(path, readOnly)
        case .open(let disk): disk
        }
    }
}
