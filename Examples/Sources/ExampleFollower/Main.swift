import Glibc
import Prefetch

/// Submits a list and draws its progress: `ExampleFollower REDIS_URL URL…`.
@main
struct ExampleFollower {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count > 2 else { usage() }
        let prefetcher = try DistributedImagePrefetcher(redisURL: words[1])
        let token = try await prefetcher.prefetch(Array(words[2...])) { finished, total in
            let filled = 20 * finished / max(1, total)
            print(
                "[\(String(repeating: "#", count: filled))\(String(repeating: ".", count: 20 - filled))] \(finished)/\(total)"
            )
        }
        let status = try await token.wait()
        print("\(status.counts.finished - status.counts.skipped) images, \(status.counts.skipped) skipped")
        for failure in try await token.failures() {
            print("line \(failure.line): \(failure.outcome.name), \(failure.message)")
        }
    }

    private static func usage() -> Never {
        let text = "usage: ExampleFollower REDIS_URL URL…\n"
        _ = write(STDERR_FILENO, text, text.utf8.count)
        exit(64)
    }
}
