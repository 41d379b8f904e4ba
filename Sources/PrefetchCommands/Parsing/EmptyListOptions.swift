internal import ArgumentParser
internal import Prefetch

/// Whether a list may have no URL at all: one that has none is more often a pipeline that failed than what was meant.
struct EmptyListOptions: ParsableArguments {
    @Flag(help: "A list without a URL is no error.")
    var allowEmpty = false

    /// - Throws: `unreadableList` where there is no URL and there has to be one.
    func check(_ count: Int, of name: String) throws(PrefetchError) {
        guard count == 0, !allowEmpty else { return }
        throw PrefetchError(
            .unreadableList, "\(name) has no URL", hint: "where a list may have none: --allow-empty")
    }
}
