internal import ArgumentParser
internal import Glibc
internal import Prefetch

/// Asks before something is gone for good.
struct Confirmation: ParsableArguments {
    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    /// Asks on a terminal.
    /// * `question`: what is to be done, as `remove 3 images`.
    /// * `command`: who asks.
    /// - Throws: `configuration` without a terminal, exit code 75 for every answer but yes; nothing was changed then.
    func ask(_ question: String, _ command: String) throws {
        guard !yes else { return }
        guard Console.isTerminal(STDIN_FILENO) else {
            throw PrefetchError(
                .configuration, "\(command) would \(question); standard input is not a terminal, so it cannot ask",
                hint: "add --yes to do it without a question")
        }
        Console.note("\(question)? [y/N]")
        guard let answer = readLine(), ["y", "yes"].contains(answer.lowercased()) else {
            Console.note("nothing was changed")
            throw ExitCode(75)
        }
    }
}
