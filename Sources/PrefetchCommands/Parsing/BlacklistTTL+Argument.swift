public import ArgumentParser
public import PrefetchModel

extension BlacklistTTL: ExpressibleByArgument {
    /// On a command line: `12h` for all reasons, or `404=7d,badImage=0`, where what is not named has its default.
    public init?(argument: String) {
        if let all = Age(argument: argument) {
            self.init(all.seconds)
            return
        }
        self.init()
        for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
            guard words.count == 2, let reason = Reason(rawValue: words[0]), let time = Age(argument: words[1])
            else { return nil }
            self[reason] = time.seconds
        }
    }
}
