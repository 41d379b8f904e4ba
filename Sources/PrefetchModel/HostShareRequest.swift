/// A downloader's request for a share of the transfers that all processes together may have to a host.
package struct HostShareRequest: Sendable, Equatable {
    /// A name or address with port, or a group.
    package var host: String
    /// Concurrent transfers of all processes together.
    package var limit: Int
    package var running: Int
    /// Transfers wanted, at most the limit.
    package var wanted: Int

    package init(host: String, limit: Int, running: Int, wanted: Int) {
        (self.host, self.limit, self.running, self.wanted) = (host, limit, running, wanted)
    }
}
