internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc

/// How progress is shown on standard error.
enum ProgressMode: String, ExpressibleByArgument, CaseIterable, Sendable {
    /// `tty` where standard error is a terminal that supports cursor movement, otherwise `plain`.
    case auto
    /// A few lines, redrawn in place.
    case tty
    /// A line now and then.
    case plain
    /// The events of `watch --json`, one object a line, with a rate each second; what else is said becomes such a line too.
    case json
    case none
}

/// `--progress`, the same on all commands that follow a batch.
struct ProgressArguments: ParsableArguments {
    @Option(
        help: .value(
            "mode", "Progress on standard error: auto, tty, plain, json or none. (default: PREFETCH_PROGRESS, or auto)")
    )
    var progress: ProgressMode?

    func validate() throws {
        if progress == nil, let word = Self.variable, ProgressMode(rawValue: word) == nil {
            throw ValidationError("PREFETCH_PROGRESS is auto, tty, plain, json or none, not '\(word)'")
        }
        if (progress ?? Self.variable.flatMap(ProgressMode.init(rawValue:))) == .tty, !Terminal.canRedraw {
            throw ValidationError("--progress tty needs a terminal on standard error; plain needs none")
        }
    }

    /// Refuses what contradicts `--quiet`.
    func check(_ level: Verbosity) throws {
        guard level <= .quiet, let progress, progress != .none else { return }
        throw ValidationError("--quiet means --progress none, so --progress \(progress.rawValue) contradicts it")
    }

    /// The mode that `auto` stands for here, or the given one.
    func mode(_ level: Verbosity) -> ProgressMode {
        if level <= .quiet { return .none }
        let mode = progress ?? Self.variable.flatMap(ProgressMode.init(rawValue:)) ?? .auto
        return mode == .auto ? (Terminal.canRedraw ? .tty : .plain) : mode
    }

    /// Whether standard error is coloured.
    var isColoured: Bool { Colours.areOn(STDERR_FILENO) }

    private static var variable: String? {
        ProcessInfo.processInfo.environment["PREFETCH_PROGRESS"].flatMap { $0.isEmpty ? nil : $0 }
    }
}
