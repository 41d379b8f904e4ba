internal import ArgumentParser

/// How much a command prints besides its result.
enum Verbosity: Int, Comparable, Sendable {
    /// `-qq`: errors only.
    case silent
    /// `-q`: no progress and no notes.
    case quiet
    case normal
    /// `-v`: also each URL that fails, and what each worker did.
    case verbose

    static func < (left: Verbosity, right: Verbosity) -> Bool { left.rawValue < right.rawValue }

    /// What a command line asks for, before it is parsed.
    init(_ words: [String]) {
        let options = words.prefix { $0 != "--" }
        let count = options.reduce(0) { count, word in
            if word == "--quiet" { return count + 1 }
            return word.count > 1 && word.dropFirst().allSatisfy { $0 == "q" } && word.hasPrefix("-")
                ? count + word.count - 1 : count
        }
        self = count >= 2 ? .silent : count == 1 ? .quiet : .normal
    }

    init(quiet: Int, verbose: Bool) {
        self = quiet >= 2 ? .silent : quiet == 1 ? .quiet : verbose ? .verbose : .normal
    }
}

/// `-q` and `-v`, the same on all commands that follow a batch.
struct VerbosityArguments: ParsableArguments {
    @Flag(name: .shortAndLong, help: "No progress and no notes; -qq prints errors only.")
    var quiet: Int

    @Flag(name: .shortAndLong, help: "Print each URL that fails, and what each worker did.")
    var verbose = false

    func validate() throws {
        if quiet > 0 && verbose { throw ValidationError("--quiet and --verbose contradict each other") }
    }

    var level: Verbosity { Verbosity(quiet: quiet, verbose: verbose) }
}
