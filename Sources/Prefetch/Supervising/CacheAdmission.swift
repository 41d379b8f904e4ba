/// On what terms a command uses the private Redis of a cache folder. What such a Redis reads is as good as code, and a folder may come from
/// anywhere.
package struct CacheAdmission: Sendable {
    /// Who vouches for data that this user has not made on this machine.
    package enum Trust: Sendable {
        /// Nobody: it is set aside.
        case none
        /// The command, once: it is used, and counts as made here from then on.
        case given
        /// The environment: it is used, and nothing is remembered.
        case standing
    }

    /// Who vouches for the folder; default nobody.
    package var trust: Trust
    /// Whether the server may be started; false for a folder that nobody has named. Then only one that runs already is used.
    package var startsServer = true
    /// Whether data that is not to be trusted may be moved aside; otherwise it is an error.
    package var setsAside = true
    /// Where this user's list of caches is.
    package var state: StateFolder
    /// Called with a sentence for a person when data was set aside.
    package var notice: @Sendable (String) -> Void

    /// Terms of their parts.
    package init(
        trust: Trust = .none, state: StateFolder, notice: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.trust = trust
        self.state = state
        self.notice = notice
    }
}
