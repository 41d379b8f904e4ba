internal import Threading

/// The names of a downloader's hosts: an operation whose name is not known yet waits here, without a slot of anything. Used only on the
/// downloader's thread.
final class NameBook {
    /// How curl reaches the host of a request.
    struct Route {
        /// The address is the operator's, and allowed regardless of the policy.
        var isAddressOverridden = false
        /// The name as curl has it, and its permitted addresses; nil: curl needs none.
        var name: (text: String, addresses: [IPAddress])?
    }

    private let sockets: NameSockets
    private let closed: BlockedEndpoints
    private let hosts: HostSchedule
    private var gate: AddressGate
    private var resolver: NameResolver
    private var waiting: [ObjectIdentifier: [(operation: DownloadOperation, place: QueuePlace, rate: Double?)]] = [:]
    private(set) var waitingCount = 0

    /// * `hosts`: where operations go whose names are known.
    init(
        _ configuration: ImageDownloader.Configuration, sockets: NameSockets, closed: BlockedEndpoints,
        hosts: HostSchedule
    ) {
        self.sockets = sockets
        self.closed = closed
        self.hosts = hosts
        gate = AddressGate(configuration, closed: closed)
        resolver = NameResolver(configuration.names, sockets: sockets)
    }

    /// Starts over with other settings; nothing may be waiting.
    func beginSession(_ new: ImageDownloader.Configuration) {
        gate = AddressGate(new, closed: closed)
        resolver = NameResolver(new.names, sockets: sockets)
    }

    /// Lets an operation's hop to its host as soon as the host's addresses are known.
    /// * `rate`: requests per second that its site asks for.
    /// - Returns: the error if they are refused.
    func enter(_ operation: DownloadOperation, at place: QueuePlace, rate: Double?) -> WebImageError? {
        let now = MonotonicClock.now
        guard let text = gate.name(toResolve: operation.request, of: operation.site) else {
            hosts.enqueue(operation, at: place, rate: rate)
            return nil
        }
        let name = resolver.name(text)
        switch resolver.lookUp(name, now: now) {
        case .known(let address):
            operation.resolve(name)
            hosts.enqueue(operation, at: place, rate: rate, address: address)
        case .refused(let error): return operation.refused(error)
        case .waits:
            operation.wait(for: nil, now: now)
            operation.resolve(name, waits: true)
            waiting[ObjectIdentifier(name), default: []].append((operation, place, rate))
            waitingCount += 1
        }
        return nil
    }

    /// - Returns: nil if the addresses have lapsed: the operation has to enter again.
    /// - Throws: `refused` if none of them is permitted; otherwise as ``AddressGate/admit(_:of:)``.
    func route(to operation: DownloadOperation, now: Double) throws(WebImageError) -> Route? {
        let (request, site) = (operation.request, operation.site)
        let isNamed = try gate.admit(request, of: site)
        guard gate.name(toResolve: request, of: site) != nil else { return Route(isAddressOverridden: isNamed) }
        guard let name = operation.name, case .addresses(let addresses) = name.entry(now: now) else { return nil }
        return Route(name: (name.text, try gate.permitted(addresses, port: request.port)))
    }

    /// The operation has ended otherwise.
    func leave(_ operation: DownloadOperation) {
        guard operation.isWaitingForName, let name = operation.name else { return }
        operation.stopWaitingForName()
        waitingCount -= 1
        var rest = waiting.removeValue(forKey: ObjectIdentifier(name)) ?? []
        rest.removeAll { $0.operation === operation }
        if rest.isEmpty {
            resolver.forget(name)
        } else {
            waiting[ObjectIdentifier(name)] = rest
        }
    }

    func removeAll() {
        for (operation, _, _) in waiting.values.joined() { operation.stopWaitingForName() }
        waiting = [:]
        waitingCount = 0
        resolver.forgetAll()
    }

    /// Receives answers and sends queries.
    /// - Returns: operations whose names have no addresses.
    func turn(now: Double) -> DownloadAdmission.Refused {
        var refused: DownloadAdmission.Refused = []
        for name in resolver.turn(now: now) {
            let released = waiting.removeValue(forKey: ObjectIdentifier(name)) ?? []
            waitingCount -= released.count
            for (operation, place, rate) in released {
                operation.stopWaitingForName()
                guard !operation.waiters.isEmpty else { continue }
                switch name.entry(now: now) {
                case .addresses(let addresses):
                    hosts.enqueue(operation, at: place, rate: rate, address: addresses[0])
                case .refused(let error): refused.append((operation, operation.refused(error)))
                // It enters again.
                case nil: hosts.enqueue(operation, at: place, rate: rate)
                }
            }
        }
        return refused
    }

    /// When ``turn(now:)`` is due; infinity: never by itself.
    func nextWake(now: Double) -> Double { resolver.nextWake(now: now) }

    func figures(now: Double) -> NameFigures { resolver.figures(now: now) }

    /// How many more downloads are worth having while operations wait here. A slow resolver must not hold back those of other names; of a
    /// fast one it is enough to have as many as it is asked for at once.
    func shortage(now: Double) -> Int {
        resolver.isSlow(now: now) ? waitingCount : min(waitingCount, resolver.figures(now: now).window)
    }
}
