package struct HostCalls: Sendable {
    /// Instants to reserve.
    package var wishes: [HostWish]
    /// Host shares to request or change.
    package var shares: [HostShareWish]
    /// Host states to publish.
    package var news: [HostNews]
    /// Sites whose robots.txt is needed.
    package var sites: [RobotsSite]
    /// Rules read from robots.txt files.
    package var rules: [RobotsNote]

    var isEmpty: Bool { wishes.isEmpty && shares.isEmpty && news.isEmpty && sites.isEmpty && rules.isEmpty }
}
