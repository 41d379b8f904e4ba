internal import Redis

struct ServerProbe: Sendable {
    enum State: Sendable {
        case ready
        /// It replies, but is still loading its data.
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
            // A read fails while data is loading, and works on a full disk; PING is refused there, and ECHO works too early.
            try await connection.command(["EXISTS", "prefetch"])
            return .ready
        } catch {
            return error.code == .transient ? .loading : .away
        }
    }
}
