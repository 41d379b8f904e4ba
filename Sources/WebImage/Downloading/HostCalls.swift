/// What a downloader wants to know of others, and has to tell them.
package struct HostCalls: Sendable {
    /// Instants it wants to reserve.
    package var wishes: [HostWish]
    /// Hosts of whose transfers it wants a part, or another one.
    package var shares: [HostShareWish]
    /// What it found out.
    package var news: [HostNews]
    /// Sites whose robots.txt it wants to know.
    package var sites: [RobotsSite]
    /// What it has read of such files.
    package var rules: [RobotsNote]

    var isEmpty: Bool { wishes.isEmpty && shares.isEmpty && news.isEmpty && sites.isEmpty && rules.isEmpty }
}
