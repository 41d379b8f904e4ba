internal import FoundationEssentials
internal import Glibc

/// Whether output has colours.
enum Colours {
    /// What the environment says: NO_COLOR, then CLICOLOR_FORCE and FORCE_COLOR, each where it is not empty, then whether the stream is a
    /// terminal that supports escape sequences (no-color.org).
    static func areOn(
        _ stream: Int32, environment: [String: String] = ProcessInfo.processInfo.environment,
        isTerminal: (Int32) -> Bool = { Console.isTerminal($0) }
    ) -> Bool {
        func says(_ name: String) -> Bool { environment[name].map { !$0.isEmpty } ?? false }
        if says("NO_COLOR") { return false }
        if ["CLICOLOR_FORCE", "FORCE_COLOR"].contains(where: { says($0) && environment[$0] != "0" }) { return true }
        guard says("TERM"), environment["TERM"] != "dumb" else { return false }
        return isTerminal(stream)
    }
}
