import Origin
import Testing

@testable import WebImage

/// A downloader for the loopback origin: everything open, pauses of a millisecond, and no limit of time that a busy machine could
/// pass by chance.
func makeDownloader(
    _ change: (inout ImageDownloader.Configuration) -> Void = { _ in }
) throws -> ImageDownloader {
    var configuration = ImageDownloader.Configuration()
    configuration.addressPolicy.allow = ["127.0.0.0/8", "::1"].compactMap { CIDR($0) }
    configuration.retryBaseDelay = 0.001
    configuration.retryMaxDelay = 0.002
    configuration.connectTimeout = 50
    configuration.downloadTimeout = 50
    configuration.stalledAfter = 50
    change(&configuration)
    return try ImageDownloader(configuration: configuration)
}

extension ImageDownloader {
    /// What a download ended with; nil where it ended well.
    func failure(
        _ url: String, options: DownloadOptions = [], headers: [HTTPHeader] = [], triesUsed: Int = 0
    ) async -> WebImageError? {
        do throws(WebImageError) {
            _ = try await download(url, options: options, headers: headers, triesUsed: triesUsed)
            return nil
        } catch {
            return error
        }
    }
}

/// A prime number of bytes without a pattern.
private let noise = {
    var state: UInt32 = 1
    return (0..<65_521).map { _ in
        state = state &* 1_664_525 &+ 1_013_904_223
        return UInt8(truncatingIfNeeded: state >> 24)
    }
}()

/// That many bytes that are no repetition of a short pattern.
func pseudoImage(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count { bytes += noise.prefix(count - bytes.count) }
    return bytes
}

extension ImageBody {
    /// All bytes.
    var bytes: [UInt8] {
        get throws(WebImageError) { try withUnsafeBytes { bytes throws(WebImageError) in Array(bytes) } }
    }
}
