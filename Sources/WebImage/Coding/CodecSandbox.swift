internal import CImageCodec
internal import Glibc
internal import Threading

/// Decodes, resizes and encodes images in child processes (`prefetch-codec`) that can do nothing else: no files, no network, no signals to others,
/// bounded memory, and processor time that this process counts. Whatever strangers' bytes do to a library of a format stays in there.
///
/// A child is started when the first image needs one, and used by one thread at a time; so there are at most as many as threads that
/// decode. It dies with this process. Thread-safe.
public final class CodecSandbox: Sendable {
    /// What holds a child.
    public struct Layers: OptionSet, Sendable, CustomStringConvertible {
        /// The layers, a bit each.
        public let rawValue: UInt32

        /// Creates a set of layers.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// System calls are those of a list (seccomp(2)).
        public static let seccomp = Layers(rawValue: CODEC_SECCOMP.rawValue)
        /// No file can be opened (landlock(7)).
        public static let landlock = Layers(rawValue: CODEC_LANDLOCK.rawValue)
        /// Descriptors, memory, core and file size (setrlimit(2)).
        public static let limits = Layers(rawValue: CODEC_LIMITS.rawValue)

        /// `seccomp, landlock, limits`
        public var description: String {
            [(Layers.seccomp, "seccomp"), (.landlock, "landlock"), (.limits, "limits")]
                .filter { contains($0.0) }.map(\.1).joined(separator: ", ")
        }
    }

    /// What a sandbox is good for.
    public enum Condition: Sendable, Equatable {
        /// These layers hold, and why others do not: `no landlock: Operation not supported`; empty if all do.
        case holds(Layers, missing: String)
        /// A child could not be started, or cannot be held: why, and what to do about it.
        case useless(String, remedy: String)
    }

    /// The one of this process; nil if `prefetch-codec` is not beside the program that runs. Where the system cannot hold a child, images are
    /// decoded in the process itself.
    public static let shared = isInstalled ? CodecSandbox() : nil

    /// Where the program is expected: in the folder of the program that runs.
    public static let program = ProgramFolder.path + "prefetch-codec"

    /// Whether the program is there.
    public static var isInstalled: Bool { access(program, X_OK) == 0 }

    private struct State {
        var idle: [CodecChild] = []
        var condition: Condition?
        var started = 0, ended = 0
        /// Nanoseconds of processor time of all calls.
        var spent: UInt64 = 0
    }

    /// Seconds of processor time after which a child is replaced.
    private static let life: UInt64 = 600_000_000_000

    /// Whether nothing is decoded without it.
    private let isRequired: Bool
    private let program: String
    private let arguments: [String]
    /// Starts the children, which the kernel kills when it ends.
    private let starter = ThreadExecutor(name: "codec")
    private let state = Locked(State())

    /// Children of the program at ``program``.
    /// - Parameter isRequired: whether an image ends with an error if a child cannot be started or held; by default it is decoded in the
    ///   process itself.
    public convenience init(isRequired: Bool = false) { self.init(program: Self.program, isRequired: isRequired) }

    /// * `arguments`: of the tests' program.
    package init(program: String, arguments: [String] = [], isRequired: Bool = true) {
        (self.program, self.arguments, self.isRequired) = (program, arguments, isRequired)
    }

    deinit {
        rest()
        starter.stop()
    }

    /// Whether it can be used, and what holds. Starts a child the first time. Blocks.
    public func condition() -> Condition {
        if let known = state.withLock({ $0.condition }) { return known }
        let found: Condition
        do throws(ImageFault) {
            let child = try start()
            found = Self.condition(child.hello)
            giveBack(child)
        } catch {
            // What may pass is asked again: no memory, no processes.
            if let code = error.code, ![ENOENT, EACCES, ENOEXEC].contains(code) {
                return .useless(error.message, remedy: "try again when the machine has memory and processes for it")
            }
            found = .useless(
                error.message,
                remedy: "install it beside this program, of the same build: scripts/install and the packages do")
        }
        state.withLock { $0.condition = found }
        return found
    }

    /// In words: what holds, or why nothing does; empty if it is not known yet.
    /// * `sandbox`: nil: none.
    package static func text(of sandbox: CodecSandbox?) -> String {
        guard let sandbox else { return isInstalled ? "off" : "off: \(program) is not there" }
        switch sandbox.state.withLock({ $0.condition }) {
        case .holds(let layers, let missing): return "\(layers)" + (missing.isEmpty ? "" : "; \(missing)")
        case .useless(let reason, _): return "off: \(reason)"
        case nil: return ""
        }
    }

    /// Whether images are decoded in it. Starts a child the first time. Blocks.
    var isUsed: Bool {
        if isRequired { return true }
        if case .holds = condition() { return true }
        return false
    }

    /// Processor time of all calls so far.
    package var processorTime: Duration { .nanoseconds(Int64(clamping: state.withLock { $0.spent })) }

    /// Ends the children that nobody uses.
    package func rest() {
        let idle = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        for child in idle { child.kill() }
    }

    /// How many children have been started, and how many have ended otherwise than by rest.
    package var turnover: (started: Int, ended: Int) { state.withLock { ($0.started, $0.ended) } }
    /// The children that nobody uses.
    var idle: [pid_t] { state.withLock { $0.idle.map(\.pid) } }

    private static func condition(_ hello: codec_hello) -> Condition {
        let layers = Layers(rawValue: hello.layers)
        let missing = [
            (Layers.seccomp, "seccomp", hello.seccomp_error), (.landlock, "landlock", hello.landlock_error),
            (.limits, "limits", hello.limits_error),
        ].filter { !layers.contains($0.0) }.map { "no \($0.1): \(errnoText($0.2))" }.joined(separator: ", ")
        guard layers.isSuperset(of: [.seccomp, .limits]) else {
            return .useless(
                "this system cannot hold a process that decodes: \(missing)",
                remedy: "allow seccomp(2), in the profile of the container")
        }
        return .holds(layers, missing: missing)
    }

    // MARK: Children

    private func start() throws(ImageFault) -> CodecChild {
        let (done, result) = (BlockingLatch(), Locked<Result<CodecChild, CodecChild.StartError>?>(nil))
        starter.perform { [program, arguments] in
            let started = Result { () throws(CodecChild.StartError) in try CodecChild(program, arguments) }
            result.withLock { $0 = started }
            done.open()
        }
        done.wait()
        switch result.withLock({ $0 }) {
        case .success(let child):
            state.withLock { $0.started += 1 }
            return child
        case .failure(let error) where error.code == 0:
            throw ImageFault(.machine, "\(program) is of another version, or does not run")
        case .failure(let error):
            throw ImageFault(.machine, "\(program) cannot be started: \(errnoText(error.code))", code: error.code)
        case nil: throw ImageFault(.machine, "\(program) was not started")
        }
    }

    private func take() throws(ImageFault) -> CodecChild {
        while let child = state.withLock({ $0.idle.popLast() }) {
            // One that had rested for long has ended.
            if child.isSilent, child.processorTime < Self.life { return child }
            child.kill()
        }
        return try start()
    }

    private func giveBack(_ child: CodecChild) {
        if child.isInterrupted { return child.kill() }
        let oldest = state.withLock { state in
            state.idle.append(child)
            return state.idle.count > 1 ? state.idle.first : nil
        }
        // One that has rested for so long that it has ended would be a zombie.
        guard let oldest, !oldest.isSilent else { return }
        let isTaken = state.withLock { state in
            guard let index = state.idle.firstIndex(where: { $0 === oldest }) else { return true }
            state.idle.remove(at: index)
            return false
        }
        if !isTaken { oldest.kill() }
    }

    // MARK: Calls

    /// A call with its input.
    struct Call {
        var record: codec_call
        /// What it is about, for messages: `JPEG`.
        var subject: String
        /// A file whose bytes the input is.
        var file: Int32?
        /// Of processor time.
        var nanoseconds: UInt64
    }

    /// What came back: a record whose fields are in their ranges, pixels or a file, and the other parts one after the other.
    struct Answer {
        var record: codec_answer
        var pixels: [UInt8]
        var rest: [UInt8]
    }

    /// Makes a call; one that ends its child is made once more in a new one.
    /// - Throws: `overLimit` with the figure, `crashed`, `cancelled`, or `machine` if it is not the image's fault.
    func run(_ call: Call, _ bytes: UnsafeRawBufferPointer) throws(ImageFault) -> Answer {
        let first: ImageFault
        do throws(ImageFault) {
            return try run(call, bytes, in: take())
        } catch {
            guard error.isWorthAnotherTry else { throw error }
            first = error
        }
        do throws(ImageFault) {
            return try run(call, bytes, in: start())
        } catch {
            throw error.kind == .killed && first.kind != .killed ? first : error
        }
    }

    private func run(
        _ call: Call, _ bytes: UnsafeRawBufferPointer, in child: CodecChild
    ) throws(ImageFault) -> Answer {
        let cancellation = CodecCancellation.current
        var call = call
        let room = call.record.room
        let output = room > 0 ? codec_output(room) : -1
        guard room == 0 || output >= 0 else {
            let code = errno
            giveBack(child)
            throw ImageFault(.machine, "no memory for an image: \(errnoText(code))", code: code)
        }
        defer { if output >= 0 { close(output) } }
        guard cancellation?.begin(child) ?? true else {
            giveBack(child)
            throw ImageFault(.cancelled, "cancelled")
        }
        var (answer, spent) = (codec_answer(), UInt64(0))
        let end = child.call(
            &call.record, bytes, file: call.file, output: output, nanoseconds: call.nanoseconds, &answer, spent: &spent)
        // Before anybody else uses the child.
        cancellation?.end()
        state.withLock { state in
            state.spent += spent
            if end != .answered { state.ended += 1 }
        }
        switch end {
        case .answered: break
        case .crashed(let how): throw ImageFault(.crashed, "its bytes ended a decoder twice: \(how)")
        case .wrong: throw ImageFault(.crashed, "a decoder answered twice what cannot be true")
        case .killed:
            throw ImageFault(.killed, "a process that decodes was killed: by somebody, or because memory ran out")
        case .late:
            throw ImageFault(
                .overLimit(.decodeTime),
                "\(call.subject) takes too long to decode, more than \(Self.seconds(call.nanoseconds)) s\(Self.undecoded)"
            )
        case .silent:
            throw ImageFault(
                .overLimit(.decodeTime),
                "\(call.subject) takes too long to decode: nothing was computed for 10 s\(Self.undecoded)",
                mayPass: true)
        case .failed(let code):
            throw ImageFault(.machine, "a process that decodes cannot be asked: \(errnoText(code))", code: code)
        case .interrupted: throw ImageFault(.cancelled, "cancelled")
        }
        guard answer.status != IMAGE_CODEC_NO_MEMORY.rawValue else {
            // What it has taken is not known.
            child.kill()
            state.withLock { $0.ended += 1 }
            throw ImageFault(
                .overLimit(.decodeMemory),
                "\(call.subject) takes more than \(Self.mebibytes(call.record.request.limits.max_memory)) to decode (--max-decode-memory raises it)",
                mayPass: true)
        }
        giveBack(child)
        let (pixels, rest) = (Int(answer.pixels), Int(answer.durations + answer.exif + answer.icc))
        return Answer(
            record: answer, pixels: try Self.read(output, 0, pixels), rest: try Self.read(output, pixels, rest))
    }

    /// The child may still write there: each byte is read once.
    private static func read(_ output: Int32, _ offset: Int, _ count: Int) throws(ImageFault) -> [UInt8] {
        if count == 0 { return [] }
        guard let bytes = OpenFile.read(output, at: offset, limit: count), bytes.count == count else {
            throw ImageFault(.machine, "the memory of an image cannot be read", code: errno)
        }
        return bytes
    }

    private static let undecoded = " (--validate structure takes it undecoded)"

    private static func seconds(_ nanoseconds: UInt64) -> String {
        // What was spent before is taken off: 0.2999 is 0.3.
        let tenths = nanoseconds.addingReportingOverflow(50_000_000).partialValue / 100_000_000
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func mebibytes(_ count: UInt64) -> String { "\(count >> 20).0 MiB" }
}
