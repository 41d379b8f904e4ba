internal import NIOCore

/// The listening socket of ``MetricsServer``: pauses accepting if descriptors or memory run out (EMFILE, ENFILE, ENOBUFS, ENOMEM).
/// SwiftNIO's own `AcceptBackoffHandler` delays later reads, but not one that is pending, and epoll reports the same connection again and
/// again (2.101.2).
final class MetricsListener: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private static let pause = TimeAmount.milliseconds(100)
    private var pausing: Scheduled<Void>?

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The channel closes itself after permanent errors.
        guard error is IOError, pausing == nil else { return }
        listen(false, context)
        pausing = context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            self.pausing = nil
            self.listen(true, context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        pausing?.cancel()
        context.fireChannelInactive()
    }

    private func listen(_ does: Bool, _ context: ChannelHandlerContext) {
        _ = context.channel.setOption(.autoRead, value: does)
    }
}
