import Threading
import WebImage

/// Writes down what a prefetcher calls, in order, and waits for a line.
final class EventLog: ImagePrefetcherDelegate {
    private struct State {
        var lines: [String] = []
        var waiters: [(line: String, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Locked(State())

    var lines: [String] { state.withLock { $0.lines } }

    func write(_ line: String) {
        let waiters = state.withLock { state in
            state.lines.append(line)
            let waiters = state.waiters.filter { $0.line == line }.map(\.continuation)
            state.waiters.removeAll { $0.line == line }
            return waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns once the line has been written.
    func wait(for line: String) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.lines.contains(line) { return true }
                state.waiters.append((line, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func progress(_ finished: Int, _ total: Int) { write("progress \(finished)/\(total)") }
    func completed(_ finished: Int, _ skipped: Int) { write("completion \(finished), \(skipped)") }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int
    ) {
        write("didPrefetch \(url) \(finishedCount)/\(totalCount)")
    }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didFinishWithTotalCount totalCount: Int, skippedCount: Int
    ) {
        write("didFinish \(totalCount), \(skippedCount)")
    }
}
