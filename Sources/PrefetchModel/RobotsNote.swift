/// A site whose robots.txt is asked for, and who asks: each program has rules of its own.
package struct RobotsSite: Sendable, Hashable {
    /// As `https://example.org:443`.
    package var site: String
    /// The first word of the User-Agent.
    package var agent: String

    package init(site: String, agent: String) {
        self.site = site
        self.agent = agent
    }
}

/// What one process has read of a site's robots.txt, for all.
package struct RobotsNote: Sendable, Equatable {
    package var site: RobotsSite
    /// The rules that concern the agent, `!` and the reason where the file could not be read, or nothing: the others ask for themselves.
    package var text: String
    /// Seconds it is kept.
    package var lifetime: Double

    /// More than this is not told.
    package static let mostBytes = 64 << 10

    package init(site: RobotsSite, text: String, lifetime: Double) {
        self.site = site
        self.text = text
        self.lifetime = lifetime
    }
}

/// What the others say of a site's robots.txt.
package enum RobotsAnswer: Sendable, Equatable {
    /// One of them has read it, and it is kept for so many seconds more.
    case known(text: String, remaining: Double)
    /// Nobody has: this process does, for all.
    case ask
    /// One of them is reading it.
    case wait
}
