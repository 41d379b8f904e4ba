internal import Glibc

/// A gate that opens once and lets through every thread that blocks at it: for threads that may, never for the cooperative pool.
///
/// `@unchecked Sendable`: all state is only touched with `mutex` held.
package final class BlockingLatch: @unchecked Sendable {
    private var isOpen = false
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    package init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    /// Lets everybody through, now and later.
    package func open() {
        pthread_mutex_lock(mutex)
        isOpen = true
        // With the mutex held: whoever passes may release the latch at once.
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Blocks until it is open.
    package func wait() {
        pthread_mutex_lock(mutex)
        while !isOpen { pthread_cond_wait(condition, mutex) }
        pthread_mutex_unlock(mutex)
    }

    /// Blocks until a task of its own has made a value: for who implements a blocking call by asynchronous ones. The task does not run on
    /// the thread that waits.
    package static func value<Value: Sendable>(of body: @escaping @Sendable () async -> Value) -> Value {
        let latch = BlockingLatch()
        let made = Locked<Value?>(nil)
        Task {
            let value = await body()
            made.withLock { $0 = value }
            latch.open()
        }
        latch.wait()
        guard let value = made.withLock({ $0 }) else {
            preconditionFailure("the latch opened before there was a value")
        }
        return value
    }
}
