package struct HostMessages: Sendable {
    /// Instants to reserve.
    package var hostRequests: [HostSlotRequest]
    /// Host shares to request or change.
    package var shares: [HostShareRequest]
    /// Host states to publish.
    package var news: [HostReport]
    /// Sites whose robots.txt is needed.
    package var sites: [RobotsSite]
    /// Rules read from robots.txt files.
    package var rules: [RobotsCopy]

    var isEmpty: Bool { hostRequests.isEmpty && shares.isEmpty && news.isEmpty && sites.isEmpty && rules.isEmpty }
}
