/// What a downloader has and wants of the transfers that all processes together may have to a host.
package struct HostShareWish: Sendable, Equatable {
    /// A name or address with its port, or a group.
    package var host: String
    /// Transfers at once, all processes together.
    package var limit: Int
    /// Transfers it has.
    package var running: Int
    /// Transfers it could have, at most the limit.
    package var wanted: Int

    package init(host: String, limit: Int, running: Int, wanted: Int) {
        (self.host, self.limit, self.running, self.wanted) = (host, limit, running, wanted)
    }
}
