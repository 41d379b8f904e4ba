// Roles that return types of this folder.
extension PrefetchQueue {
    package var views: QueueViews { QueueViews(redis) }
    package var workerRecords: WorkerRecords { WorkerRecords(redis) }
    package var openURLs: OpenURLs { OpenURLs(redis) }
    package var keySpace: KeySpace { KeySpace(redis) }
}
