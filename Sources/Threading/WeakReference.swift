/// A thread's reference to the actor that it works for, which it must not keep alive. Empty until it is set, at the end of the actor's `init`.
package final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    private struct Weak: Sendable { weak var object: Object? }
    private let weak = Locked(Weak())

    package init() {}

    package var object: Object? { weak.withLock { $0.object } }

    package func set(_ object: Object) { weak.withLock { $0.object = object } }
}
