internal import NIOCore
internal import NIOHTTP1

/// One connection to ``MetricsServer``: one request, its response, and the end. Clients that are slow, send too much or exceed the limit of
/// connections are disconnected, and block no others.
final class MetricsConnection: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = MetricsServer.Response
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case reading
        case answering(isHead: Bool)
        case sending
        case sent
    }

    private static let maxBytes = 8_192
    /// Timeout of a request, and of a response.
    private static let waitLimit = TimeAmount.seconds(5)
    /// Time for the client to close after the response.
    private static let closeTimeout = TimeAmount.seconds(1)

    private let room: MetricsConnections
    private let names: ListenNames
    private let ask: (MetricsServer.Request) -> Void
    private var state = State.reading
    private var hasBytes = false
    private var hasEnded = false
    private var deadline: Scheduled<Void>?

    private init(room: MetricsConnections, names: ListenNames, ask: @escaping (MetricsServer.Request) -> Void) {
        (self.room, self.names, self.ask) = (room, names, ask)
    }

    /// Sets up an accepted connection on its event loop.
    /// * `room`: the connections of the server.
    /// * `names`: accepted hosts.
    /// * `ask`: receives the request; the response is then written to the channel.
    static func prepare(
        _ channel: any Channel, room: MetricsConnections, names: ListenNames,
        ask: @escaping (MetricsServer.Request) -> Void
    ) throws {
        var limits = NIOHTTPDecoderLimitConfiguration()
        (limits.maxHeaderFieldSize, limits.maxHeaderListSize) = (maxBytes, maxBytes)
        let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits)
        try channel.pipeline.syncOperations.addHandlers(
            HTTPResponseEncoder(),
            // The limits count names and values; the decoder would buffer blanks between the two without limit.
            ByteToMessageHandler(decoder, maximumBufferSize: maxBytes),
            MetricsConnection(room: room, names: names, ask: ask))
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        guard room.enter(ObjectIdentifier(channel), close: { channel.close(promise: nil) }) else {
            return context.close(promise: nil)
        }
        cutOff(in: Self.waitLimit, context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        room.leave(ObjectIdentifier(context.channel))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Data after the head, a body or another request, is discarded.
        guard case .reading = state, case .head(let head) = Self.unwrapInboundIn(data) else { return }
        guard head.uri.hasPrefix("/") else { return refuse(400, context) }
        guard head.method == .GET || head.method == .HEAD else { return refuse(405, context) }
        let hosts = head.headers["host"]
        guard hosts.count <= 1 else { return refuse(400, context) }
        if let host = hosts.first, !names.contains(host) { return refuse(421, context) }
        room.hasAsked(ObjectIdentifier(context.channel))
        deadline?.cancel()
        state = .answering(isHead: head.method == .HEAD)
        let path = String(head.uri.prefix { $0 != "?" })
        ask(MetricsServer.Request(path: path, accept: head.headers["accept"].joined(separator: ",")))
    }

    func channelReadComplete(context: ChannelHandlerContext) { hasBytes = true }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event as? ChannelEvent == .inputClosed else { return }
        hasEnded = true
        switch state {
        case .reading, .sent: context.close(promise: nil)
        case .answering, .sending: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case HTTPParserError.headerOverflow, is ByteToMessageDecoderError.PayloadTooLargeError: refuse(431, context)
        case is HTTPParserError: refuse(400, context)
        // More of a refused request.
        case is ByteToMessageDecoderError: break
        default: context.close(promise: nil)
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        send(Self.unwrapOutboundIn(data), context).cascade(to: promise)
    }

    private func refuse(_ code: Int, _ context: ChannelHandlerContext) {
        guard case .reading = state else { return }
        let status = HTTPResponseStatus(statusCode: code)
        _ = send(MetricsServer.Response(status: code, body: "\(code) \(status.reasonPhrase)\n"), context)
    }

    private func send(_ response: MetricsServer.Response, _ context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        var isHead = false
        if case .answering(true) = state { isHead = true }
        state = .sending
        cutOff(in: Self.waitLimit, context)
        var headers: HTTPHeaders = [
            "Content-Type": response.contentType, "Content-Length": String(response.body.utf8.count),
            "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Connection": "close",
        ]
        if response.status == 405 { headers.add(name: "Allow", value: "GET, HEAD") }
        let status = HTTPResponseStatus(statusCode: response.status)
        let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        if !isHead {
            context.write(Self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: response.body)))), promise: nil)
        }
        let gone = context.eventLoop.makePromise(of: Void.self)
        gone.futureResult.assumeIsolated().whenSuccess { self.leave(context) }
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: gone)
        return gone.futureResult
    }

    /// Closing with unread bytes resets the connection, and may lose the response: the client closes it (RFC 9112, 9.6).
    private func leave(_ context: ChannelHandlerContext) {
        state = .sent
        guard !hasEnded else { return context.close(promise: nil) }
        cutOff(in: Self.closeTimeout, context)
        context.close(mode: .output, promise: nil)
    }

    private func cutOff(in time: TimeAmount, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
            if case .reading = self.state, self.hasBytes { return self.refuse(408, context) }
            context.close(promise: nil)
        }
    }
}
