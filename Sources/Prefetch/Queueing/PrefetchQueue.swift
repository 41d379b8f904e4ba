package import Redis

/// The queue in Redis as functions: every change of state is one Lua script, and every script may be sent again after a lost reply.
///
/// A value over one connection; it holds no state of its own. What is in Redis: `docs/PROTOCOL.md`.
///
/// A call waits while Redis is away or says that it cannot now, up to ``patience``, and sends the script again.
package struct PrefetchQueue: Sendable {
    /// The connection all calls use.
    package let connection: RedisConnection
    /// How long a call waits for a Redis that is away; nil = until the task is cancelled.
    package var patience: Duration?
    /// How long a call waits for a Redis that refuses it (NOAUTH, WRONGPASS, NOPERM); not at all by default, because a wrong password
    /// stays wrong. For whoever was let in before: then somebody is changing the password, and soon has.
    package var forbearance: Duration = .zero
    /// The names of this queue's keys.
    package let keys: PrefetchKeys
    /// Says that Redis is away, where somebody wants to hear of it.
    private var teller: RedisOutageTeller?
    /// Hears what a call came upon beside what it was for.
    package var notice: @Sendable (Notice) -> Void = { _ in }

    /// Something wrong with one batch, while the others go on.
    package enum Notice: Sendable, Equatable {
        /// An element of its job list was no job of it; it is on the list of the dead now. With its first bytes.
        case buried(batch: String, head: [UInt8])
        /// It cannot be worked on: a key of it is not what it must be.
        case broken(batch: String, message: String)
        /// Redis did not take a report of it, for a reason that is none of the known ones.
        case refused(batch: String, message: String)
    }

    /// * `name`: 1 to 64 of `A-Z a-z 0-9 _ -`; it becomes the hash tag of every key.
    package init(connection: RedisConnection, name: String = "default", patience: Duration? = .seconds(10)) {
        self.connection = connection
        self.patience = patience
        keys = PrefetchKeys(queue: name)
    }

    /// A queue over a connection of its own, which follows the queue through a Redis Cluster.
    /// * `client`: what CLIENT LIST shows.
    /// * `name`: 1 to 64 of `A-Z a-z 0-9 _ -`.
    /// * `onPlaces`: hears where Redis listens, as of `RedisConnection`.
    package init(
        _ redis: RedisConfiguration, client: String, name: String = "default", patience: Duration? = .seconds(10),
        onPlaces: @escaping @Sendable (Set<RedisPlace>) -> Void = { _ in }
    ) {
        self.init(
            connection: RedisConnection(
                redis, name: client, following: PrefetchKeys(queue: name).root, onPlaces: onPlaces),
            name: name, patience: patience)
    }

    /// The same queue over another connection, or with another patience.
    init(connection: RedisConnection, keys: PrefetchKeys, patience: Duration?) {
        self.connection = connection
        self.patience = patience
        self.keys = keys
    }

    /// The same queue for whoever has time: its calls wait for a Redis that is away, is loading or takes no writes until the task is
    /// cancelled, and `tell` hears of it.
    package func waiting(_ tell: @escaping @Sendable (RedisOutage.Notice) -> Void) -> PrefetchQueue {
        var queue = self
        queue.patience = nil
        queue.teller = RedisOutageTeller(tell)
        return queue
    }

    /// Looks whether this Redis can keep a queue; returns what a person should know of it.
    /// - Throws: `configuration` where it cannot.
    package func checkServer() async throws(RedisError) -> [String] {
        try await patiently { () async throws(RedisError) in try await connection.serverFacts().check() }
    }

    /// Whether a text may name a queue.
    package static func isValidName(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// Whether a text may name a batch: as a queue, and dots inside.
    package static func isValidBatchID(_ id: String) -> Bool {
        isValidName(id.replacing(".", with: "-")) && !id.hasPrefix(".")
    }

    /// A script of the folder `Scripts`: its flags and its name, the shared prelude, `step` where it is one of a repair, its own lines. The
    /// name is the second line of the text: MONITOR, SCRIPT LOAD and a proxy between a program and Redis show which script a call runs.
    ///
    /// The flags say what it does to the queue, by which Redis judges whether to run it. None: it adds to it, and a full Redis refuses
    /// it, which is the back-pressure. `allow-oom`: it changes it, and drains it in the end, so a full Redis must still run it.
    /// `allow-oom,no-writes`: it changes nothing, and runs also where Redis takes no writes, because its disk is full.
    static func script(_ file: [UInt8], step: [UInt8] = []) -> RedisScript {
        let head = String(decoding: file, as: UTF8.self).split(separator: "\n").prefix(2)
        let name = head[1].prefix { $0 != ":" }
        let lines = [head[0], name] + [PackageResources.prelude_lua, step, file].flatMap(code)
        return RedisScript(name: String(name.dropFirst(3)), source: lines.joined(separator: "\n"))
    }

    /// The lines of a file behind the comment at its head.
    private static func code(_ file: [UInt8]) -> some Sequence<Substring> {
        String(decoding: file, as: UTF8.self).split(separator: "\n").drop { $0.hasPrefix("#!") || $0.hasPrefix("--") }
    }

    /// One script call with the root key.
    func run(_ script: RedisScript, _ arguments: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await patiently { () async throws(RedisError) in
            try await connection.run(script, keys: [RedisArgument(keys.root)], arguments: arguments)
        }
    }

    /// Commands in one round trip, for reading. Repeated as a whole where a reply says that Redis cannot now.
    func read(_ commands: [[RedisArgument]]) async throws(RedisError) -> [RedisValue] {
        try await patiently { () async throws(RedisError) in
            let replies = try Self.withoutTransient(try await connection.pipeline(commands))
            guard forbearance > .zero else { return replies }
            for reply in replies { if let error = reply.error?.asError, error.code == .refused { throw error } }
            return replies
        }
    }

    /// Two commands whose replies, the first of several, are the time of the queue's clock.
    var clockCommands: [[RedisArgument]] { [["TIME"], ["HGET", RedisArgument(keys.clock), "ahead"]] }

    /// Milliseconds since 1970 by the queue's clock, from the replies to ``clockCommands``: what times in Redis are to be compared with.
    static func time(_ replies: [RedisValue]) throws(RedisError) -> Int {
        (try replies[0].get().milliseconds ?? 0) + (replies[1].count ?? 0)
    }

    /// The replies, or the first of their errors that waiting can heal: a node of a cluster that is losing its slot refuses one command
    /// and not the next.
    static func withoutTransient(_ replies: [RedisValue]) throws(RedisError) -> [RedisValue] {
        for case .error(let reply) in replies {
            let error = reply.asError
            if error.isTransient { throw error }
        }
        return replies
    }

    /// Repeats an idempotent call while Redis is away, up to ``patience``, or refuses it, up to ``forbearance``.
    nonisolated(nonsending) func patiently<Success>(
        _ body: nonisolated(nonsending) () async throws(RedisError) -> Success
    ) async throws(RedisError) -> Success {
        let (began, forbearance, teller) = (ContinuousClock.now, forbearance, teller)
        let value = try await withRetry(
            until: patience.map { .now + max($0, forbearance) },
            canHeal: { error in
                let waited = ContinuousClock.now - began
                if error.code == .refused { return waited < forbearance }
                return error.isTransient && patience.map { forbearance == .zero || waited < $0 } ?? true
            }, onRetry: { error, _ in teller?.fails(error) }, body)
        teller?.answers()
        return value
    }
}
