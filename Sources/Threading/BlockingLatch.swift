internal import Glibc

/// A one-shot gate that blocks threads until it opens. Only for threads that may block, never for the cooperative pool.
///
/// `@unchecked Sendable`: all state is accessed only with `mutex` held.
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

    package func open() {
        pthread_mutex_lock(mutex)
        isOpen = true
        // Broadcast with the mutex held: a released waiter may free the latch immediately.
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    package func wait() {
        pthread_mutex_lock(mutex)
        while !isOpen { pthread_cond_wait(condition, mutex) }
        pthread_mutex_unlock(mutex)
    }
}
