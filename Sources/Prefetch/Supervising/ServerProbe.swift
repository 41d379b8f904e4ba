internal import Redis

/// Asks a server whether it can be used yet.
struct ServerProbe: Sendable {
    enum State: Sendable {
        case ready
        /// It answers, but still reads its data.
        case loading
        case away
    }

    private let connection: RedisConnection

    init(socket: String) {
        let configuration = RedisConfiguration(
            endpoint: .unix(path: socket), connectTimeout: .seconds(1), commandTimeout: .seconds(1))
        connection = RedisConnection(configuration, name: "prefetch-probe")
    }

    func state() async -> State {
        do throws(RedisError) {
            // A read waits for the data, and is taken where the disk is full. PING is refused there, and ECHO taken before the data is there.
            try await connection.command(["EXISTS", "prefetch"])
            return .ready
        } catch {
            return error.code == .transient ? .loading : .away
        }
    }
}
