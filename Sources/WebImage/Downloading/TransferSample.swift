/// What the transfers of a downloader did in an interval of some hundred milliseconds: the input of ``ConcurrencyController``.
package struct TransferSample: Sendable, Equatable {
    /// Failures of one host in the interval.
    package struct HostFailure: Sendable, Equatable {
        package enum Kind: Sendable, CaseIterable {
            /// No connection: refused, or not there after a second, by which time its first packet was lost.
            case connect
            /// The name was not resolved.
            case name
            /// The body was cut, reset or stopped.
            case body
        }

        package var kind: Kind
        package var count: Int
        /// Whether the host had answered before; of others only the first failure is here.
        package var isKnown: Bool
        /// Its answers in the same interval.
        package var answers: Int
        package var host: String

        package init(_ kind: Kind, of host: String, count: Int, isKnown: Bool, answers: Int) {
            (self.kind, self.host, self.count) = (kind, host, count)
            (self.isKnown, self.answers) = (isKnown, answers)
        }
    }

    package var seconds: Double
    /// Transfers that ended with a response, whatever its status.
    package var answered = 0
    /// Bytes of bodies that arrived.
    package var bytes = 0
    /// Transfers that hold a slot at its end.
    package var running = 0
    /// Connections at its end, those of no transfer included.
    package var connections = 0
    /// Hosts that answered.
    package var hosts = 0
    package var failures: [HostFailure] = []
    /// By how many seconds the handshakes of new connections took longer than the shortest round trip to their hosts.
    package var delays: [Double] = []

    package init(seconds: Double) { self.seconds = seconds }
}

/// What bounds the number of transfers beside their throughput.
package struct ConcurrencyBounds: Sendable, Equatable {
    /// Transfers for which there are descriptors, and memory.
    package var descriptors: Int, memory: Int
    /// Share that is used of the processors that more transfers would need, 0 to 1.
    package var processor: Double

    package init(descriptors: Int = .max, memory: Int = .max, processor: Double = 0) {
        (self.descriptors, self.memory, self.processor) = (descriptors, memory, processor)
    }
}

extension TransferSample.HostFailure.Kind {
    /// The class of a failed transfer; nil: it says nothing about the network, or was counted as a late connect.
    /// * `requestWasSent`: whether there was a connection.
    init?(_ error: WebImageError, requestWasSent: Bool) {
        switch error.code {
        case .cannotFindHost: self = .name
        case .cannotConnectToHost: self = .connect
        case .connectionLost: self = .body
        case .timedOut where requestWasSent: self = .body
        default: return nil
        }
    }
}
