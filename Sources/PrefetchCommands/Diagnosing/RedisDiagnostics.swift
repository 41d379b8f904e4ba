internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis

/// Checks whether a Redis is reachable, can keep a queue, keeps it through a crash, and is fast enough.
struct RedisDiagnostics: Sendable {
    let location: RedisLocation
    /// Whether it was named; the default one is optional.
    let isNamed: Bool

    func findings() async -> [Finding] {
        do throws(PrefetchError) {
            switch try location.place() {
            case .server(let configuration): return await server(configuration)
            case .cache(let folder): return try await ownServer(folder)
            }
        } catch {
            return [Finding(.fail, "redis", error.message, remedy: error.hint)]
        }
    }

    /// The private server of a cache, started for the check if it is not running.
    private func ownServer(_ folder: String) async throws(PrefetchError) -> [Finding] {
        guard let state = try RunState.existing(folder, in: location.stateFolder) else {
            return [Finding(.ok, "redis", "\(folder) has no private Redis yet; run makes one")]
        }
        let attachment = try await PrivateRedis.attach(state, waitLimit: Session.soon)
        let findings = await server(attachment.configuration)
        await attachment.leave()
        return findings
    }

    private func server(_ configuration: RedisConfiguration) async -> [Finding] {
        var configuration = configuration
        (configuration.connectTimeout, configuration.commandTimeout) = (Session.soon, Session.soon)
        let connection = RedisConnection(configuration, name: "prefetch-coord")
        let findings: [Finding]
        do throws(RedisError) {
            findings = try await examine(connection, configuration)
        } catch {
            let place = configuration.redactedURL
            if error.isTransient && !isNamed {
                findings = [
                    Finding(
                        .warn, "redis", error.message,
                        remedy: "run brings its own; for submit and workers elsewhere name one: --redis URL")
                ]
            } else {
                let error = PrefetchError(error)
                findings = [Finding(.fail, "redis", "\(place): \(error.message)", remedy: error.hint)]
            }
        }
        await connection.close()
        return findings
    }

    private func examine(
        _ connection: RedisConnection, _ configuration: RedisConfiguration
    ) async throws(RedisError) -> [Finding] {
        let facts = try await connection.serverFacts()
        var findings = [
            Finding(
                .ok, "redis",
                "\(facts.version) at \(configuration.redactedURL)\(facts.isCluster ? ", of a cluster" : "")")
        ]
        do throws(RedisError) {
            _ = try facts.check()
        } catch {
            return findings + [Finding(.fail, "redis", error.message, remedy: error.hint ?? "")]
        }
        findings.append(
            facts.isAOFEnabled || facts.isLoading
                ? Finding(
                    .ok, "persistence",
                    "an append-only file: a Redis crash loses at most one second of results, which are redone")
                : Finding(
                    .warn, "persistence",
                    "no append-only file: a crash of Redis loses what was queued since its last snapshot",
                    remedy: "redis-cli CONFIG SET appendonly yes, and the same in redis.conf"))
        findings.append(memory(facts))
        findings += try await time(connection)
        return findings
    }

    private func memory(_ facts: RedisServerFacts) -> Finding {
        let used = Wording.bytes(facts.usedMemory)
        guard facts.maxmemory > 0 else { return Finding(.ok, "memory", "\(used), without a limit") }
        let text = "\(used) of \(Wording.bytes(facts.maxmemory))"
        let share = Double(facts.usedMemory) / Double(facts.maxmemory)
        if share >= 1 {
            return Finding(
                .fail, "memory", "full: \(text)",
                remedy: "raise maxmemory; until workers have made room no list is taken")
        }
        return share > 0.9
            ? Finding(
                .warn, "memory", "nearly full: \(text)",
                remedy: "raise maxmemory, or remove old batches: prefetch-coord rm BATCH")
            : Finding(.ok, "memory", text)
    }

    private func time(_ connection: RedisConnection) async throws(RedisError) -> [Finding] {
        var quickest = Duration.seconds(1_000)
        var skew = 0.0
        for _ in 0..<5 {
            let began = ContinuousClock.now
            let reply = try await connection.command(["TIME"]).array ?? []
            let took = ContinuousClock.now - began
            guard took < quickest else { continue }
            quickest = took
            let theirs = Double(reply.first?.int ?? 0) + Double(reply.last?.int ?? 0) / 1e6
            skew = Date().timeIntervalSince1970 - theirs - (took / .seconds(1)) / 2
        }
        let milliseconds = quickest / .milliseconds(1)
        let text = "answers in \(Wording.decimal(milliseconds, digits: milliseconds < 10 ? 2 : 0)) ms"
        var findings = [
            milliseconds > 50
                ? Finding(
                    .warn, "latency", text,
                    remedy: "put Redis and the workers on one network: each report waits so long")
                : Finding(.ok, "latency", text)
        ]
        if abs(skew) > 5 {
            findings.append(
                Finding(
                    .warn, "clock", "differs from that of Redis by \(Wording.seconds(abs(skew)))",
                    remedy: "set both by NTP: leases go by Redis' clock alone, certificates and file dates by this one")
            )
        }
        return findings
    }
}
