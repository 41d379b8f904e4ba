internal import Glibc

/// Processor time of single threads (pthread_getcpuclockid(3)).
enum ThreadTime {
    /// The processor time that a thread has used so far; zero if unknown. The thread must not have ended.
    static func of(_ thread: pthread_t) -> Duration {
        var (clock, time) = (clockid_t(), timespec())
        guard pthread_getcpuclockid(thread, &clock) == 0, clock_gettime(clock, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
