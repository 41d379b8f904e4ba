internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc

/// `--color`, and what the environment says where it says nothing: NO_COLOR, then CLICOLOR_FORCE and FORCE_COLOR, each where it is not
/// empty, then whether the stream is a terminal that supports escape sequences (no-color.org).
enum ColourChoice: String, ExpressibleByArgument, CaseIterable, Sendable {
    case auto
    case always
    case never

    /// Whether what goes to a stream is coloured.
    func isOn(
        _ stream: Int32, environment: [String: String] = ProcessInfo.processInfo.environment,
        isTerminal: (Int32) -> Bool = { isatty($0) == 1 }
    ) -> Bool {
        func says(_ name: String) -> Bool { environment[name].map { !$0.isEmpty } ?? false }
        switch self {
        case .always: return true
        case .never: return false
        case .auto:
            if says("NO_COLOR") { return false }
            if ["CLICOLOR_FORCE", "FORCE_COLOR"].contains(where: { says($0) && environment[$0] != "0" }) {
                return true
            }
            guard says("TERM"), environment["TERM"] != "dumb" else { return false }
            return isTerminal(stream)
        }
    }
}
