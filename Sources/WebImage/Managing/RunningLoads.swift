internal import Threading

/// The loads of one manager that have not ended (SDWebImageManager's `runningOperations`), each in a task that can be cancelled from outside.
final class RunningLoads: Sendable {
    private struct State {
        var next = 0
        var tasks: [Int: Task<Result<LoadedImage, WebImageError>, Never>] = [:]
    }

    private let state = Locked(State())

    /// Whether there is one.
    var isEmpty: Bool { state.withLock { $0.tasks.isEmpty } }

    /// Cancels all there are now.
    func cancelAll() {
        for task in state.withLock({ Array($0.tasks.values) }) { task.cancel() }
    }

    /// Runs a load. Cancelling the caller's task cancels it too.
    func run(
        _ load: @escaping @Sendable () async throws(WebImageError) -> LoadedImage
    ) async throws(WebImageError) -> LoadedImage {
        // Begun with the lock held, so that whoever sees what it does finds it here.
        let (id, task) = state.withLock { state in
            let task = Task<Result<LoadedImage, WebImageError>, Never> {
                do throws(WebImageError) { return .success(try await load()) } catch { return .failure(error) }
            }
            state.next += 1
            state.tasks[state.next] = task
            return (state.next, task)
        }
        defer { state.withLock { $0.tasks[id] = nil } }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        return try result.get()
    }
}
