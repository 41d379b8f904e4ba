import Glibc
import Prefetch
import Redis

/// Whether a process has ended and nothing of it is left, not even a zombie.
func isGone(_ pid: Int32) -> Bool { kill(pid, 0) < 0 && errno == ESRCH }

extension PrivateRedis {
    /// A new connection to the server.
    nonisolated var connection: RedisConnection { RedisConnection(configuration, name: "test") }

    /// The pid of the server that answers now, nil where none does.
    nonisolated func serverPID() async -> Int32? {
        let info = try? await connection.command(["INFO", "server"]).string
        let line = info?.split(whereSeparator: \.isNewline).first { $0.hasPrefix("process_id:") }
        return line.flatMap { Int32($0.dropFirst("process_id:".count)) }
    }

    /// Whether the server has handed what it knows to the kernel, which keeps it when the server is killed.
    nonisolated var hasWrittenAll: Bool {
        get async {
            let info = try? await connection.command(["INFO", "persistence"]).string
            return info?.contains("aof_buffer_length:0\r\n") == true
        }
    }
}
