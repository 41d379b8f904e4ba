internal import CLinux
internal import Glibc

/// A detached thread.
enum Threads {
    private final class Body {
        let name: String
        let run: () -> Void

        init(_ name: String, _ run: @escaping () -> Void) { (self.name, self.run) = (name, run) }
    }

    /// * `name`: shown by `top -H`, at most 15 bytes.
    static func start(_ name: String, _ run: @escaping () -> Void) -> pthread_t {
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { argument in
                let body = Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                clinux_set_thread_name(body.name)
                body.run()
                return nil
            }, Unmanaged.passRetained(Body(name, run)).toOpaque())
        precondition(status == 0, "cannot start a thread: \(String(cString: strerror(status)))")
        pthread_detach(thread)
        return thread
    }
}
