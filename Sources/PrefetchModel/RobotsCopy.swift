/// A site and the User-Agent whose robots.txt rules apply.
package struct RobotsSite: Sendable, Hashable {
    /// As `https://example.org:443`.
    package var site: String
    /// The first word of the User-Agent.
    package var agent: String

    package init(site: String, agent: String) {
        self.site = site
        self.agent = agent
    }

    package static func == (one: Self, other: Self) -> Bool {
        ByteText(one.site) == ByteText(other.site) && ByteText(one.agent) == ByteText(other.agent)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ByteText(site))
        hasher.combine(ByteText(agent))
    }
}

package struct RobotsCopy: Sendable, Equatable {
    package var site: RobotsSite
    /// The rules for the agent; `!` and the reason if the file could not be read; empty if the other processes have to fetch it themselves.
    package var text: String
    /// Seconds until it expires.
    package var lifetime: Double

    /// Longer texts are not published.
    package static let maxBytes = 64 << 10

    package init(site: RobotsSite, text: String, lifetime: Double) {
        self.site = site
        self.text = text
        self.lifetime = lifetime
    }
}

package enum RobotsAnswer: Sendable, Equatable {
    /// Already read; valid for `remaining` seconds.
    case known(text: String, remaining: Double)
    /// Not read yet: this process reads it for all.
    case ask
    /// Another process is reading it.
    case wait
}
