internal import CImageCodec
internal import CLinux
internal import Glibc
internal import Threading

/// One child process that decodes. It has one user at a time, on a thread that may block; any thread may interrupt it.
final class CodecChild: Sendable {
    /// How a call ended.
    enum End: Equatable {
        case answered
        /// It died of its own: by a signal, or with an exit code.
        case crashed(String)
        /// Somebody else has killed it.
        case killed
        /// It took more processor time than it was given.
        case late
        /// It slept.
        case silent
        /// Its answer cannot be one, or it closed the socket.
        case wrong
        /// This process lacks something (errno(3)).
        case failed(Int32)
        /// ``interrupt()`` was called.
        case interrupted
    }

    let pid: pid_t
    private let link: SendablePointer
    private let socket: Int32
    private let state = Locked(State())

    private struct State {
        /// Whether the socket is this child's.
        var isOpen = true
        var isInterrupted = false
    }

    struct StartError: Error {
        /// errno(3); 0: it did not say what was expected.
        let code: Int32
    }

    /// Starts one and waits until it has locked itself in. Only on a thread that lives as long as the child, which the kernel kills with it.
    init(_ program: String, _ arguments: [String]) throws(StartError) {
        let place = UnsafeMutablePointer<codec_link>.allocate(capacity: 1)
        guard codec_link_make(place) else {
            let code = errno
            place.deallocate()
            throw StartError(code: code)
        }
        let words = [program] + arguments
        let argv = words.map { strdup($0) } + [nil]
        // A child that is attacked finds no secrets there. What an administrator says about libraries holds for it, too.
        let environment = ["LD_LIBRARY_PATH", "LD_PRELOAD"].compactMap { (name: String) in
            getenv(name).map { value in strdup("\(name)=\(String(cString: value))") }
        }
        let envp = environment + [nil]
        defer { for word in argv + envp { free(word) } }
        pid = clinux_spawn(program, argv, envp, [place.pointee.child_socket, -1, -1], [-1, -1], -1, SIGKILL, 1)
        guard pid > 0 else {
            let code = errno
            codec_link_close(place)
            place.deallocate()
            throw StartError(code: code)
        }
        (link, socket) = (SendablePointer(place), place.pointee.socket)
        let end = codec_link_open(place)
        guard end == CODEC_ANSWERED.rawValue else {
            let code = end == CODEC_FAILED.rawValue ? errno : 0
            kill()
            throw StartError(code: code)
        }
    }

    deinit {
        // Nobody uses it any more.
        link.pointer.assumingMemoryBound(to: codec_link.self).deallocate()
    }

    private var pointer: UnsafeMutablePointer<codec_link> { link.pointer.assumingMemoryBound(to: codec_link.self) }

    /// What it said first.
    var hello: codec_hello { pointer.pointee.hello }

    /// Processor time so far, in nanoseconds.
    var processorTime: UInt64 {
        var time: UInt64 = 0
        return codec_processor_time(pid, &time) ? time : .max
    }

    /// Makes a call. Unless it is answered, the child is gone afterwards.
    func call(
        _ call: inout codec_call, _ bytes: UnsafeRawBufferPointer, file: Int32?, output: Int32, nanoseconds: UInt64,
        _ answer: inout codec_answer, spent: inout UInt64
    ) -> End {
        let base = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
        let end = codec_link_call(pointer, pid, &call, base, file ?? -1, output, nanoseconds, &answer, &spent)
        let code = errno
        if end != CODEC_ANSWERED.rawValue, isInterrupted {
            kill()
            return .interrupted
        }
        switch UInt32(bitPattern: end) {
        case CODEC_ANSWERED.rawValue: return .answered
        case CODEC_GONE.rawValue: return reap()
        case CODEC_LATE.rawValue:
            kill()
            return .late
        case CODEC_SILENT.rawValue:
            kill()
            return .silent
        case CODEC_FAILED.rawValue:
            kill()
            return .failed(code)
        default:
            kill()
            return .wrong
        }
    }

    /// Whether it is there, and has said nothing that nobody has asked for.
    var isSilent: Bool {
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) < 0 && errno == EAGAIN
    }

    var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

    /// Ends the call that another thread waits for.
    func interrupt() {
        state.withLock { state in
            state.isInterrupted = true
            if state.isOpen { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    /// Ends it. Once.
    func kill() {
        _ = Glibc.kill(pid, SIGKILL)
        _ = reap()
    }

    private func reap() -> End {
        var status: Int32 = 0
        let isDead = codec_reap(pid, &status)
        state.withLock { $0.isOpen = false }
        codec_link_close(pointer)
        guard isDead else { return .wrong }
        let signal = clinux_wtermsig(status)
        if signal == SIGKILL { return .killed }
        guard signal == 0 else { return .crashed("signal \(signal)" + (Self.names[signal].map { " (\($0))" } ?? "")) }
        return .crashed("exit code \(clinux_wexitstatus(status))")
    }

    private static let names: [Int32: String] = [
        SIGILL: "SIGILL", SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGSEGV: "SIGSEGV",
        SIGXCPU: "SIGXCPU", SIGSYS: "SIGSYS: it tried what no decoder needs",
    ]
}
