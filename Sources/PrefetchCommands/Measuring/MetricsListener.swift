internal import NIOCore

/// The listening socket of ``MetricsServer``: where there is nothing to accept with (EMFILE, ENFILE, ENOBUFS, ENOMEM), in a moment somebody
/// has closed something. SwiftNIO's own `AcceptBackoffHandler` holds back the reads that are asked for; one that is asked for already it
/// leaves, and epoll reports the same connection again and again (2.101.2).
final class MetricsListener: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private static let pause = TimeAmount.milliseconds(100)
    private var pausing: Scheduled<Void>?

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // What is no passing trouble the channel closes for by itself.
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
