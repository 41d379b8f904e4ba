import Glibc
import Prefetch
import WebImage

/// A worker inside a service, with a coder and a URL filter of its own: `ExampleWorker REDIS_URL FOLDER NETWORK`. It works until no batch is
/// running.
@main
struct ExampleWorker {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count == 4 else { usage() }
        let coders = ImageCodersManager()
        coders.addCoder(PortableGraymap())
        var downloads = ImageDownloader.Configuration()
        downloads.maxConcurrentDownloads = 8
        let network = CIDR(words[3])
        guard network != nil || words[3] == "none" else { usage() }
        downloads.addressPolicy = AddressPolicy(allow: [network].compactMap { $0 })
        downloads.urlFilters = [NoThumbnails()]
        let manager = try ImageManager(
            cache: ImageCache(directory: words[2]), downloads: downloads, coder: ImageCoder(coders: coders))

        var configuration = PrefetchWorker.Configuration()
        configuration.maxConcurrentDownloads = 8
        configuration.burst = true
        let worker = try PrefetchWorker(redisURL: words[1], manager: manager, configuration: configuration)
        let counts = try await worker.run()
        print("finished \(counts.finished), skipped \(counts.skipped)")
        await manager.downloader.invalidateSessionAndCancel()
    }

    private static func usage() -> Never {
        let text = "usage: ExampleWorker REDIS_URL FOLDER NETWORK, where NETWORK is none, or one such as 127.0.0.0/8\n"
        _ = write(STDERR_FILENO, text, text.utf8.count)
        exit(64)
    }
}

/// Requests no thumbnails.
struct NoThumbnails: ImageURLFilter {
    func refusal(of url: String) -> String? { url.contains("/thumbs/") ? "thumbnails are not wanted" : nil }
}

/// Decodes binary graymaps of up to 255 shades (PGM, the format P5 of Netpbm).
final class PortableGraymap: ImageCoding {
    func canDecode(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.starts(with: "P5".utf8) }

    func decodedImage(
        with bytes: UnsafeRawBufferPointer, options: ImageDecodeOptions
    ) throws(WebImageError) -> Bitmap {
        var numbers: [Int] = []
        var place = 2
        while numbers.count < 3, place < bytes.count {
            let digits = bytes[place...].prefix { (0x30...0x39).contains($0) }
            if let number = Int(String(decoding: digits, as: UTF8.self)) { numbers.append(number) }
            place += max(1, digits.count)
        }
        guard numbers.count == 3, (1...4096).contains(numbers[0]), (1...4096).contains(numbers[1]), numbers[2] <= 255,
            bytes.count - place - 1 >= numbers[0] * numbers[1]
        else { throw WebImageError(.badImageData, "the graymap is incomplete") }
        let shades = bytes[(place + 1)...].prefix(numbers[0] * numbers[1])
        return try Bitmap(
            width: numbers[0], height: numbers[1], hasAlpha: false, pixels: shades.flatMap { [$0, $0, $0] })
    }

    func canEncode(to format: ImageFormat?) -> Bool { false }

    func encodedData(with image: Bitmap, format: ImageFormat?) throws(WebImageError) -> [UInt8] {
        throw WebImageError(.badImageData, "graymaps are not written")
    }
}
