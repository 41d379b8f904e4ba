/// The terms for a cache's private Redis: its data is as dangerous as code, and a folder may come from anywhere.
package struct CacheAdmission: Sendable {
    /// Trust in data that this user has not created on this machine.
    package enum Trust: Sendable {
        /// Untrusted: the data is set aside.
        case none
        /// By the command, once: the data is used, and trusted from then on.
        case given
        /// By the environment: the data is used, and nothing is recorded.
        case standing
    }

    package var trust: Trust
    /// Whether the server may be started; false for a folder that was not named: then only a running one is used.
    package var startsServer = true
    /// Whether untrusted data may be moved aside; otherwise it is an error.
    package var movesAside = true
    package var state: StateFolder
    /// Called with a message when data was set aside.
    package var notice: @Sendable (String) -> Void

    package init(
        trust: Trust = .none, state: StateFolder, notice: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.trust = trust
        self.state = state
        self.notice = notice
    }
}
