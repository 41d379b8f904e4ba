import Glibc
import WebImage

/// Prefetches URLs in this process, with a delegate: `ExamplePrefetch FOLDER NETWORK URL…`. NETWORK is a private network that is open, such as
/// 127.0.0.0/8, or `none`.
@main
struct ExamplePrefetch {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count > 3 else { usage() }
        var downloads = ImageDownloader.Configuration()
        let network = CIDR(words[2])
        guard network != nil || words[2] == "none" else { usage() }
        downloads.addressPolicy = AddressPolicy(allow: [network].compactMap { $0 })
        let manager = try ImageManager(cache: ImageCache(directory: words[1]), downloads: downloads)
        let prefetcher = ImagePrefetcher(manager: manager)
        let printer = Printer()
        prefetcher.delegate = printer

        let token = prefetcher.prefetch(Array(words[3...])) { finished, total in
            print("progress \(finished)/\(total)")
        } completed: { finished, skipped in
            print("completed \(finished), skipped \(skipped)")
        }
        let summary = await token.wait()
        for failure in summary.failed + summary.skipped { print("\(failure.url): \(failure.error)") }
        await manager.downloader.invalidateSessionAndCancel()
    }

    private static func usage() -> Never {
        let text = "usage: ExamplePrefetch FOLDER NETWORK URL…, where NETWORK is none, or one such as 127.0.0.0/8\n"
        _ = write(STDERR_FILENO, text, text.utf8.count)
        exit(64)
    }
}

/// Prints each URL that ends.
final class Printer: ImagePrefetcherDelegate {
    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int
    ) {
        print("prefetched \(url)")
    }
}
