import CLinux
import Foundation
import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Decoding in a sandbox", .timeLimit(.minutes(5)))
struct SandboxTests {
    private let folder = TemporaryDirectory()
    private let box = CodecSandbox(isRequired: true)

    private static func limits(seconds: Double = 2, memory: Int = 256 << 20) -> ImageCoder.Limits {
        var limits = ImageCoder.Limits()
        limits.cpuNanoseconds = Int(seconds * 1e9)
        limits.maxMemory = memory
        return limits
    }

    /// A coder whose child is taken over by an attacker.
    private func attacked(_ words: String..., limits: ImageCoder.Limits = limits()) -> ImageCoder {
        ImageCoder(
            limits: limits,
            sandbox: CodecSandbox(program: builtProduct("prefetch-codec-attacked"), arguments: words))
    }

    private static func boxed(_ sandbox: CodecSandbox) -> ImageCoder { ImageCoder(sandbox: sandbox) }
    private static let plain = ImageCoder(sandbox: nil)

    /// The same numbers each time.
    private struct Steps {
        var state: UInt64

        mutating func next(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
    }

    // MARK: The program

    @Test("The program that decodes has none of Swift's libraries, and is of no use by hand")
    func program() async throws {
        let libraries = try await ChildProcess("/usr/bin/env", ["ldd", CodecSandbox.program])
        #expect(await libraries.wait() == .exited(0))
        #expect(libraries.stdout.contains("libjpeg") && !libraries.stdout.contains("libswift"), "\(libraries.stdout)")
        let alone = try await ChildProcess(CodecSandbox.program)
        #expect(await alone.wait() == .exited(64))
    }

    @Test("All layers hold here, and a child at rest takes less than 4 MB")
    func layers() throws {
        guard case .holds(let layers, let missing) = box.condition() else {
            Issue.record("\(box.condition())")
            return
        }
        #expect(layers.isSuperset(of: [.seccomp, .limits]))
        #expect(layers.contains(.landlock) == missing.isEmpty)
        let child = try #require(box.idle.first)
        let status = try String(contentsOfFile: "/proc/\(child)/status", encoding: .utf8)
        #expect(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "\(status)")
        let memory = try String(contentsOfFile: "/proc/\(child)/smaps_rollup", encoding: .utf8)
        let line = try #require(memory.split(separator: "\n").first { $0.hasPrefix("Pss:") })
        #expect(Int(line.filter(\.isNumber)) ?? .max < 4 << 10, "\(line)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: "/proc/\(child)/fd").sorted() == ["0", "1", "2"])
    }

    @Test("A program that is missing, or does not speak to us, is a fault of this machine and says so")
    func missing() throws {
        for program in ["/nonexistent/prefetch-codec", "/bin/true"] {
            let sandbox = CodecSandbox(program: program)
            guard case .useless(let reason, let remedy) = sandbox.condition() else {
                Issue.record("\(program) holds")
                continue
            }
            #expect(reason.contains(program) && remedy.hasPrefix("install it"), "\(remedy)")
            let error = Self.boxed(sandbox).failure(Sample.webp.bytes, level: .decode)
            #expect(error?.code == .localFault && error?.outcome == nil, "\(String(describing: error))")
            // One that need not be there is done without.
            #expect(
                Self.boxed(CodecSandbox(program: program, isRequired: false))
                    .failure(Sample.webp.bytes, level: .decode) == nil)
        }
    }

    // MARK: The same results

    @Test("Checks say the same in and out of the box, whole, damaged and cut", arguments: Sample.allCases)
    func checks(sample: Sample) {
        let coder = Self.boxed(box)
        func same(_ bytes: [UInt8], _ what: String) {
            for level in [ValidationLevel.header, .structure, .decode] {
                let results = [coder, Self.plain].map { coder in
                    Result { () throws(WebImageError) in try coder.verify(bytes, level: level) }
                }
                switch (results[0], results[1]) {
                case (.success(let boxed), .success(let plain)): #expect(boxed == plain, "\(sample) \(what)")
                case (.failure(let boxed), .failure(let plain)):
                    #expect(
                        boxed.code == plain.code && boxed.message == plain.message
                            && boxed.isIncompleteImage == plain.isIncompleteImage, "\(sample) \(what)")
                default: Issue.record("\(sample) \(what) \(level): \(results)")
                }
            }
        }
        let bytes = sample.bytes
        same(bytes, "whole")
        for part in 1...8 { same(Array(bytes[..<(bytes.count * part / 9)]), "cut at \(part)/9") }
        var random = Steps(state: UInt64(bytes.count))
        for number in 0..<40 {
            var damaged = bytes
            damaged[3 + random.next(bytes.count - 3)] ^= UInt8(1 + random.next(255))
            same(damaged, "damaged \(number)")
        }
    }

    @Test("Pixels, frames and reduced images are identical in and out of the box", arguments: Sample.allCases)
    func pixels(sample: Sample) throws {
        let coder = Self.boxed(box)
        func decoded(_ coder: ImageCoder, _ options: ImageDecodeOptions) throws -> [AnimatedImage.Frame] {
            let one = try sample.bytes.withUnsafeBytes { try coder.decode($0, options: options) }
            let all = try sample.bytes.withUnsafeBytes { try coder.decodeFrames($0, options: options) }
            return [.init(image: one, duration: .zero)] + all.frames
        }
        var options = ImageDecodeOptions()
        #expect(try decoded(coder, options) == decoded(Self.plain, options))
        options.thumbnailPixelSize = PixelSize(width: 17, height: 0)
        #expect(try decoded(coder, options) == decoded(Self.plain, options))
        options.minimumSize = PixelSize(width: 9, height: 7)
        #expect(try decoded(coder, options) == decoded(Self.plain, options))
    }

    @Test("What is written and resized is identical in and out of the box", arguments: [ImageFormat.jpeg, .png, .webp])
    func made(format: ImageFormat) throws {
        let bytes = Sample.rgba16PNG.bytes
        func made(_ coder: ImageCoder) throws -> [UInt8] {
            var image = try bytes.withUnsafeBytes { try coder.decode($0) }
            image.metadata = ImageMetadata(exif: Array("II*\0\u{8}\0\0\0\0\0\0\0\0\0".utf8))
            var options = ImageEncodeOptions()
            options.maxPixelSize = PixelSize(width: 20, height: 20)
            return try coder.encode(image, as: format, options: options)
        }
        #expect(try made(Self.boxed(box)) == made(Self.plain))
    }

    @Test("Good JPEG, PNG and GIF are proved by our own readers, without a child")
    func proved() {
        let coder = Self.boxed(box)
        for sample in [
            Sample.baselineJPEG, .restartJPEG, .grayJPEG, .progressiveJPEG, .png, .palettePNG, .animatedPNG, .gif,
            .animatedGIF, .lossyWebP,
        ] {
            #expect(coder.failure(sample.bytes, level: .decode) == nil, "\(sample)")
        }
        #expect(box.turnover.started == 0)
        #expect(coder.failure(Sample.alphaWebP.bytes, level: .decode) == nil)
        #expect(coder.failure(ChunkSurgery.withEmptyDNL(Sample.progressiveJPEG.bytes), level: .decode) == nil)
        #expect(box.turnover.started == 1)
    }

    // MARK: Attacks

    /// A PNG in a file, longer than the window.
    private func largeBody() throws -> (ImageBody, path: String) {
        let bytes = Sample.png.bytes + [UInt8](repeating: 0, count: 2 << 20)
        folder.write(bytes, to: "body.png")
        let path = folder.path("body.png")
        let body = ImageBody(memoryLimit: 1 << 20) { () throws(WebImageError) in
            clinux_open(path, O_RDWR | O_CLOEXEC, 0)
        }
        try bytes.withUnsafeBytes { try body.append($0) }
        return (body, path)
    }

    @Test(
        "Code in a child reaches no file, no socket, no process and no memory of others",
        arguments: [
            "open", "create", "proc", "memfd", "connect", "kill", "fork", "exec", "code", "limits", "ptrace", "bytes",
            "map", "write", "truncate",
        ])
    func attacks(attack: String) async throws {
        let origin = try OriginServer()
        folder.write(Array("secret".utf8), to: "secret")
        let targets = [
            "open": folder.path("secret"), "create": folder.path("made"),
            "connect": origin.url("/").split(separator: ":").last.map { String($0.filter(\.isNumber)) } ?? "",
        ]
        let coder = attacked(attack, targets[attack] ?? "-")
        let (body, path) = try largeBody()
        try await body.finish()
        let before = try Data(contentsOf: URL(filePath: path))
        let error = #expect(throws: WebImageError.self) {
            try body.withUnsafeBytes { bytes throws(WebImageError) in try coder.reading(body).decode(bytes) }
        }
        // Refused: by the end of the process, or by an error.
        let isDead = error?.code == .decoderCrashed && error?.message.contains("SIG") == true
        let isRefused = error?.code == .badImageData && error?.message.contains("attempt \(attack) -1 errno") == true
        // Of a file it has a private copy.
        #expect(isDead || isRefused || attack == "bytes", "\(attack): \(String(describing: error))")
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
        #expect(origin.requestCount() == 0)
        #expect(!FileManager.default.fileExists(atPath: folder.path("made")))
        // So is a body in memory, which lies in a window.
        guard attack == "bytes" else { return }
        let small = attacked("bytes").failure(Sample.webp.bytes, level: .decode)
        #expect(
            small?.outcome == .poison || small?.message.contains("-1 errno") == true, "\(String(describing: small))")
    }

    @Test(
        "An answer that cannot be one is that image's fault: each field is checked",
        arguments: [
            "version", "status", "number", "width", "height", "orientation", "frame_count", "has_alpha", "color",
            "warning_count", "pixel_width", "pixel_height", "channels", "pixel_frames", "rows", "pixels", "durations",
            "exif", "icc", "message", "length",
        ])
    func lies(field: String) {
        let error = #expect(throws: WebImageError.self) {
            try Sample.png.bytes.withUnsafeBytes { try attacked("lie", field).decode($0) }
        }
        #expect(error?.code == .decoderCrashed && error?.outcome == .poison, "\(field): \(String(describing: error))")
        #expect(
            error?.message == "a decoder answered twice what cannot be true", "\(field): \(String(describing: error))")
    }

    @Test("A lie that can be true is believed: pixels, and a text without raw bytes")
    func plausible() throws {
        let image = try Sample.png.bytes.withUnsafeBytes { try attacked("lie", "nothing").decode($0) }
        #expect(image.pixels.allSatisfy { $0 == 0 } && image.width == Sample.width)
        let text = attacked("lie", "text").failure(Sample.webp.bytes, level: .decode)
        #expect(text?.message == String(repeating: "?", count: 119))
    }

    @Test("Descriptors that come with an answer are not taken")
    func descriptors() {
        let error = attacked("descriptor").failure(Sample.webp.bytes, level: .decode)
        #expect(error?.code == .decoderCrashed)
    }

    // MARK: Ends

    @Test("A crash is one image's: it is tried twice, all others are decoded")
    func crashes() {
        let sandbox = CodecSandbox(
            program: builtProduct("prefetch-codec-attacked"), arguments: ["crash", "\(Sample.width)"])
        let coder = Self.boxed(sandbox)
        let other = GeneratedImage.webp(seed: 3, width: 20, height: 20)
        for number in 0..<30 {
            if number % 10 == 5 {
                let error = coder.failure(Sample.webp.bytes, level: .decode)
                #expect(error?.outcome == .poison && error?.message.contains("SIGSEGV") == true)
            } else {
                #expect(coder.failure(other, level: .decode) == nil)
            }
        }
        #expect(sandbox.turnover.ended == 6)
    }

    @Test("An endless loop ends as tooLarge with the figure, and is not tried again; sleep is noticed too")
    func time() {
        let spinning = CodecSandbox(program: builtProduct("prefetch-codec-attacked"), arguments: ["spin"])
        var limits = Self.limits(seconds: 0.3)
        limits.cpuNanosecondsPerPixel = 0
        let error = ImageCoder(limits: limits, sandbox: spinning).failure(Sample.webp.bytes, level: .decode)
        #expect(error?.code == .tooLarge && error?.reason == .decodeTime, "\(String(describing: error))")
        #expect(
            error?.message.contains("more than 0.3 s (--validate structure") == true, "\(String(describing: error))")
        #expect(spinning.turnover.started == 1)
        #expect(FailedURLPolicy.allCases.allSatisfy { policy in error.map { !policy.lists($0) } ?? false })
    }

    @Test("One that sleeps, and computes nothing, ends as tooLarge", .thorough)
    func silence() {
        let error = attacked("sleep").failure(Sample.webp.bytes, level: .decode)
        #expect(error?.code == .tooLarge && error?.message.contains("nothing was computed") == true)
    }

    @Test("Memory beyond the limit ends as tooLarge with the figure")
    func memory() {
        let error = attacked("exhaust", limits: Self.limits(memory: 64 << 20))
            .failure(Sample.webp.bytes, level: .decode)
        #expect(error?.code == .tooLarge && error?.reason == .decodeMemory, "\(String(describing: error))")
        #expect(error?.message.contains("more than 64.0 MiB") == true)
    }

    @Test("A child that ends between two images is replaced, and nobody notices")
    func replaced() throws {
        let coder = Self.boxed(box)
        #expect(coder.failure(Sample.webp.bytes, level: .decode) == nil)
        kill(try #require(box.idle.first), SIGKILL)
        #expect(coder.failure(Sample.webp.bytes, level: .decode) == nil)
        let error = attacked("exit").failure(Sample.webp.bytes, level: .decode)
        #expect(error?.message.contains("exit code 0") == true)
    }

    /// Children of a process, as /proc has them.
    private static func children(_ name: String) -> [pid_t] {
        let folders = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return folders.compactMap { pid_t($0) }.filter { pid in
            let stat = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
            let words = (try? String(contentsOfFile: "/proc/\(pid)/cmdline", encoding: .utf8)) ?? ""
            let parent = stat.split(separator: ")").last?.split(separator: " ").dropFirst().first
            return parent.map(String.init) == "\(getpid())"
                && words.split(separator: "\0").last.map(String.init) == name
        }
    }

    private static func isLockedInAndWaits(_ pid: pid_t) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
        return status.contains("State:\tS") && status.contains("Seccomp:\t2")
    }

    @Test("A kill from outside is a fault of this machine, not of the image")
    func killed() async throws {
        let mark = "outside-\(UInt64.random(in: 0 ... .max))"
        let coder = attacked("sleep", mark)
        let thread = ThreadPool(threads: 1, name: "killed")
        async let failure = thread.run { coder.failure(Sample.webp.bytes, level: .decode) }
        for _ in 0..<2 {
            var found: [pid_t] = []
            // One that is killed before it has locked itself in and waits could not be started, which is another fault.
            try await until {
                found = Self.children(mark).filter(Self.isLockedInAndWaits)
                return !found.isEmpty
            }
            for pid in found { kill(pid, SIGKILL) }
            try await until { !Self.children(mark).contains { found.contains($0) } }
        }
        let error = await failure
        #expect(
            error?.code == .localFault && error?.outcome == nil && error?.isOfOneFile == true,
            "\(String(describing: error))")
    }

    @Test("A cancelled task ends the call that it waits for at once")
    func cancelled() async throws {
        let mark = "cancelled-\(UInt64.random(in: 0 ... .max))"
        let coder = attacked("sleep", mark)
        let pool = ThreadPool(threads: 1, name: "cancelled")
        let task = Task(executorPreference: pool) { () async -> WebImageError? in
            do throws(WebImageError) {
                return try await CodecCancellation.guarding { () throws(WebImageError) in
                    coder.failure(Sample.webp.bytes, level: .decode)
                }
            } catch { return error }
        }
        try await until { !Self.children(mark).isEmpty }
        let began = ContinuousClock.now
        task.cancel()
        let error = await task.value
        #expect(error?.code == .cancelled, "\(String(describing: error))")
        #expect(ContinuousClock.now - began < .seconds(5))
        #expect(Self.children(mark).isEmpty)
    }

    @Test("Children of many threads are as many as threads, and die with their sandbox")
    func pool() async {
        let threads = 4
        let pool = ThreadPool(threads: threads, name: "many")
        var sandbox: CodecSandbox? = CodecSandbox(isRequired: true)
        let coder = sandbox.map(Self.boxed)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask(executorPreference: pool) {
                    #expect(coder?.failure(Sample.webp.bytes, level: .decode) == nil)
                }
            }
        }
        let started = sandbox?.turnover.started ?? 0
        #expect((1...threads).contains(started))
        sandbox = nil
    }
}
