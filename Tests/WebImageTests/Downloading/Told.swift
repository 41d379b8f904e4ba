import Threading

/// What a progress closure was called with.
final class Told: Sendable {
    private let state = Locked<[[Int]]>([])
    var calls: [[Int]] { state.withLock { $0 } }
    func append(_ received: Int, _ expected: Int) { state.withLock { $0.append([received, expected]) } }
}
