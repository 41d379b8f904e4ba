internal import Threading

/// The running loads of a manager (SDWebImageManager's `runningOperations`), each in a task that can be cancelled from outside.
final class RunningLoads: Sendable {
    private struct State {
        var next = 0
        var tasks: [Int: Task<Result<LoadedImage, WebImageError>, Never>] = [:]
    }

    private let state = Locked(State())

    var isEmpty: Bool { state.withLock { $0.tasks.isEmpty } }

    func cancelAll() {
        for task in state.withLock({ Array($0.tasks.values) }) { task.cancel() }
    }

    func run(
        _ load: @escaping @Sendable () async throws(WebImageError) -> LoadedImage
    ) async throws(WebImageError) -> LoadedImage {
        // Started with the lock held: the load is registered before its effects are visible.
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
