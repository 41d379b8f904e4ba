internal import Glibc

/// An interruptible sleep for a thread; needs no descriptor.
///
/// `@unchecked Sendable`: `isSignalled` is accessed only with `mutex` held.
package final class ThreadAlarm: @unchecked Sendable {
    private var isSignalled = false
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    package init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // Setting the wall clock must not prolong a sleep.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    /// Ends the sleep, from any thread; remembered if the thread is not sleeping.
    package func wake() {
        pthread_mutex_lock(mutex)
        isSignalled = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Sleeps until ``wake()`` or for `duration`. One thread at a time.
    package func sleep(atMost duration: Duration) {
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        let (seconds, attoseconds) = max(.zero, duration).components
        let nanoseconds = end.tv_nsec + Int(attoseconds / 1_000_000_000)
        end.tv_sec += Int(min(seconds, 86_400)) + nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        pthread_mutex_lock(mutex)
        while !isSignalled, pthread_cond_timedwait(condition, mutex, &end) == 0 {}
        isSignalled = false
        pthread_mutex_unlock(mutex)
    }
}
