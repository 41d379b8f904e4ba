internal import Glibc
internal import Prefetch
internal import WebImage

/// Submits a list with the library and prints every call it gets, one a line: `DelegateProgram REDIS_URL LIST`; the id of the batch goes
/// to standard error. Or prints the events of a batch in the same form: `DelegateProgram REDIS_URL BATCH events`.
@main
struct DelegateProgram {
    static func main() async {
        let words = CommandLine.arguments
        do {
            let prefetcher = try DistributedImagePrefetcher(redisURL: words[1])
            let printer = CallPrinter()
            prefetcher.delegate = printer
            if words.count > 3 {
                for try await event in prefetcher.events(ofBatch: words[2]) { printer.write(event) }
            } else {
                let token = try await prefetcher.prefetch(
                    listAt: words[2], progress: { say("progress \($0)/\($1)") },
                    completed: { say("completion \($0), \($1)") })
                note("batch \(token.id)")
                try await token.wait()
            }
            withExtendedLifetime(printer) {}
        } catch {
            note("\(error)")
            exit(1)
        }
    }

    private static func note(_ line: String) { put(line, to: STDERR_FILENO) }
}

/// A line of standard output, at once.
private func say(_ line: String) { put(line, to: STDOUT_FILENO) }

private func put(_ line: String, to file: Int32) {
    let bytes = Array((line + "\n").utf8)
    _ = write(file, bytes, bytes.count)
}

/// Prints what a prefetcher calls, of this process or of many.
final class CallPrinter: ImagePrefetcherDelegate {
    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int
    ) {
        say("didPrefetch \(url) \(finishedCount)/\(totalCount)")
    }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didFinishWithTotalCount totalCount: Int, skippedCount: Int
    ) {
        say("didFinish \(totalCount), \(skippedCount)")
    }

    func write(_ event: PrefetchEvent) {
        switch event {
        case .progress(let finished, let total): say("progress \(finished)/\(total)")
        case .didPrefetch(let url, let finished, let total, _, _): say("didPrefetch \(url) \(finished)/\(total)")
        case .didFinish(let total, let skipped): say("didFinish \(total), \(skipped)")
        case .completion(let finished, let skipped): say("completion \(finished), \(skipped)")
        }
    }
}
