import Foundation
import Origin
import PrefetchModel

@testable import WebImage

/// A downloader of endless work on a simulated network, event by event, without a clock: each transfer connects, waits for its first byte,
/// receives its body over its server's or the common link, and is checked by one processor. Stalled connects hold no slot, and connections
/// are kept after their transfer, as in the downloader; with a fixed limit only as many as there are transfers.
final class ConcurrencySimulation {
    /// The network and the machine.
    struct World {
        /// Seconds to the first byte, and their spread as a factor.
        var latency = 0.1, spread = 0.5
        /// Mean bytes of a body, and whether sizes differ much.
        var size = 50_000.0, isSizeWild = true
        /// Bytes a second of one transfer, and of all.
        var serverRate = Double.infinity, linkRate = Double.infinity
        /// URLs a second that the processor checks, and how much each further transfer costs it.
        var processorRate = Double.infinity, crowding = 0.0
        /// Connections, with or without a transfer, above which a router drops the first packet of others.
        var mostConnections = Int.max
        var hosts = 200
        /// Hosts that answer nothing.
        var dead: Set<Int> = []
        /// URLs of the list; nil: endless.
        var urls: Int?
        /// Transfers that the hosts' own limits allow.
        var politeness = Int.max
    }

    /// What came of a time.
    struct Result {
        var ended = 0, failed = 0
        var seconds = 0.0
        var limits: [Int] = []
        var reasons: [ConcurrencyReason] = []
        var rate: Double { Double(ended) / seconds }
        var failedShare: Double { ended + failed == 0 ? 0 : Double(failed) / Double(ended + failed) }
    }

    fileprivate enum Event {
        case packet(Int, number: Int)
        case stalled(Int)
        case timedOut(Int)
        case retry(host: Int, tries: Int)
        case firstByte(Int)
        case bodyEnd(Int)
        case checked(Int)
        case sample
        case late(Int)
    }

    private enum Stage { case free, connecting, waiting, receiving, checking }

    private struct Transfer {
        var stage = Stage.free
        var host = 0, tries = 1, life = 0
        var isStalled = false
        var size = 0.0
    }

    private static let names = (0..<2000).map { "host\($0)" }

    var world: World
    private var random: SplitMix64
    private var queue = EventQueue()
    /// Ends of bodies over the common link, by what each transfer has received.
    private var shared = EventQueue()
    private var transfers: [Transfer] = []
    private var free: [Int] = []
    private var now = 0.0, virtual = 0.0, movedAt = 0.0
    private var running = 0, open = 0, receiving = 0, stalled = 0
    /// Connections without a transfer: in all, by host, and hosts in the order of their use.
    private var idle = 0, idleOf: [Int: Int] = [:], idleHosts: [Int] = [], oldestIdle = 0
    private var processorFree = 0.0
    private var limit: Int
    private var controller: ConcurrencyController?
    private let tally = TransferTally()
    private var bytes = 0.0
    private var begun = 0
    private var waitingRetries = 0
    private var result = Result()

    /// * `limit`: nil: the controller's.
    init(_ world: World, limit: Int?, seed: UInt64) {
        self.world = world
        random = SplitMix64(state: seed)
        controller = limit == nil ? ConcurrencyController() : nil
        self.limit = limit ?? ConcurrencyController.start
        _ = tally.sample(running: 0, runningBytes: 0, now: 0)
        queue.push(.sample, life: 0, at: 0.25)
    }

    /// Goes on for so many seconds, or to the end of the list.
    func run(_ seconds: Double) -> Result {
        result = Result()
        let (begin, end) = (now, now + seconds)
        start()
        while true {
            let next = min(queue.nextTime, sharedEnd)
            if next > end || isOver { break }
            advance(to: next)
            if let (event, life) = sharedEnd <= next ? shared.pop() : queue.pop() {
                handle(event, life: life)
            }
            start()
        }
        if !isOver { advance(to: end) }
        result.seconds = now - begin
        return result
    }

    /// Connections, with or without a transfer.
    var connections: Int { open + idle }

    private var isOver: Bool {
        guard let urls = world.urls else { return false }
        return begun >= urls && running + stalled + waitingRetries == 0
    }

    // MARK: Time

    /// When the next body over the common link ends. The link gives each the same share: `virtual` is what each has received so far.
    private var sharedEnd: Double {
        guard receiving > 0, shared.nextTime < .infinity else { return .infinity }
        return now + max(0, shared.nextTime - virtual) * Double(receiving) / world.linkRate
    }

    private func advance(to time: Double) {
        let passed = time - now
        if receiving > 0 {
            if world.linkRate < .infinity {
                virtual += passed * world.linkRate / Double(receiving)
                bytes += passed * world.linkRate
            } else if world.serverRate < .infinity {
                bytes += passed * world.serverRate * Double(receiving)
            }
        }
        now = time
    }

    // MARK: Life of a transfer

    private func start() {
        while running < min(limit, world.politeness), begun < world.urls ?? .max {
            begun += 1
            begin(host: Int(random.next() % UInt64(world.hosts)), tries: 1)
        }
    }

    private func begin(host: Int, tries: Int) {
        let index = free.popLast() ?? transfers.count
        if index == transfers.count { transfers.append(Transfer()) }
        let life = transfers[index].life + 1
        let factor = world.isSizeWild ? -log(Double.random(in: 0.001...1, using: &random)) : 1
        transfers[index] = Transfer(stage: .connecting, host: host, tries: tries, life: life, size: world.size * factor)
        running += 1
        queue.push(.packet(index, number: 0), life: life, at: now)
    }

    private func handle(_ event: Event, life: Int) {
        switch event {
        case .sample: sample()
        case .retry(let host, let tries):
            waitingRetries -= 1
            begin(host: host, tries: tries)
        case .packet(let index, _), .stalled(let index), .timedOut(let index), .firstByte(let index),
            .bodyEnd(let index), .checked(let index), .late(let index):
            guard transfers[index].life == life else { return }
            handle(event, of: index, life)
        }
    }

    private func handle(_ event: Event, of index: Int, _ life: Int) {
        switch event {
        case .packet(_, let number): connect(index, packet: number, life)
        case .stalled:
            if transfers[index].stage == .connecting, stalled < 4096 {
                transfers[index].isStalled = true
                (running, stalled) = (running - 1, stalled + 1)
            }
        case .late: if transfers[index].stage == .connecting { didFail(index) }
        case .timedOut: if transfers[index].stage == .connecting { giveUp(index) }
        case .firstByte:
            transfers[index].stage = .receiving
            receiving += 1
            if world.linkRate < .infinity {
                shared.push(.bodyEnd(index), life: life, at: virtual + transfers[index].size)
            } else {
                let duration = world.serverRate < .infinity ? transfers[index].size / world.serverRate : 0
                queue.push(.bodyEnd(index), life: life, at: now + duration)
            }
        case .bodyEnd: didReceive(index)
        case .checked: finish(index)
        case .sample, .retry: break
        }
    }

    private func connect(_ index: Int, packet number: Int, _ life: Int) {
        let host = transfers[index].host
        let isKept = number == 0 && takeIdle(of: host)
        guard isKept || !world.dead.contains(host) && open + idle < world.mostConnections else {
            // Repeated after 1, 3 and 7 s (RFC 6298).
            if number == 0 {
                queue.push(.stalled(index), life: life, at: now + 0.25)
                queue.push(.late(index), life: life, at: now + 1)
                queue.push(.timedOut(index), life: life, at: now + 10)
            }
            if number < 3 {
                queue.push(.packet(index, number: number + 1), life: life, at: now + Double(1 << number))
            }
            return
        }
        open += 1
        transfers[index].stage = .waiting
        if transfers[index].isStalled {
            transfers[index].isStalled = false
            (running, stalled) = (running + 1, stalled - 1)
        }
        let delay = world.latency * Double.random(in: (1 - world.spread)...(1 + world.spread), using: &random)
        queue.push(.firstByte(index), life: life, at: now + delay)
    }

    private func didReceive(_ index: Int) {
        receiving -= 1
        if world.linkRate == .infinity && world.serverRate == .infinity { bytes += transfers[index].size }
        transfers[index].stage = .checking
        guard world.processorRate < .infinity else { return finish(index) }
        processorFree = max(processorFree, now) + (1 + world.crowding * Double(running)) / world.processorRate
        queue.push(.checked(index), life: transfers[index].life, at: processorFree)
    }

    private func finish(_ index: Int) {
        let host = transfers[index].host
        tally.didAnswer(Self.names[host])
        open -= 1
        keepIdle(of: host)
        result.ended += 1
        release(index)
    }

    private func takeIdle(of host: Int) -> Bool {
        guard let count = idleOf[host], count > 0 else { return false }
        idleOf[host] = count - 1
        idle -= 1
        return true
    }

    /// Keeps the connection, and closes the oldest one if there are too many.
    private func keepIdle(of host: Int) {
        idle += 1
        idleOf[host, default: 0] += 1
        idleHosts.append(host)
        if keepsIdle ? idle > 4 * limit + 64 : open + idle > limit { closeOldestIdle() }
    }

    private var keepsIdle: Bool { controller?.keepsIdleConnections ?? false }

    private func closeOldestIdle() {
        guard idle > 0 else { return }
        while !takeIdle(of: idleHosts[oldestIdle]) { oldestIdle += 1 }
        oldestIdle += 1
        if oldestIdle > 10_000 {
            idleHosts.removeFirst(oldestIdle)
            oldestIdle = 0
        }
    }

    private func didFail(_ index: Int) {
        tally.didFail(Self.names[transfers[index].host], .connect)
    }

    private func giveUp(_ index: Int) {
        let (host, tries) = (transfers[index].host, transfers[index].tries)
        release(index)
        if tries < 3 {
            waitingRetries += 1
            queue.push(.retry(host: host, tries: tries + 1), life: 0, at: now + Double(tries))
        } else if !world.dead.contains(host) {
            result.failed += 1
        }
    }

    private func release(_ index: Int) {
        if transfers[index].isStalled { stalled -= 1 } else { running -= 1 }
        transfers[index].isStalled = false
        transfers[index].stage = .free
        transfers[index].life += 1
        free.append(index)
    }

    private func sample() {
        queue.push(.sample, life: 0, at: now + 0.25)
        // curl closes those that have been idle for a second.
        if !keepsIdle { for _ in 0..<idle / 4 { closeOldestIdle() } }
        var sample = tally.sample(running: running, runningBytes: Int(bytes), now: now)
        sample.connections = open + idle
        controller?.take(sample, ConcurrencyBounds())
        if let controller {
            limit = controller.limit
            result.reasons.append(controller.reason)
        }
        result.limits.append(limit)
    }
}

/// Events by time, first in first out at the same time. Not generic, and compared member by member: without optimization that takes a
/// fraction of the time.
private struct EventQueue {
    private struct Entry {
        var time: Double
        var order: Int
        var event: ConcurrencySimulation.Event
        var life: Int

        func isBefore(_ other: Entry) -> Bool { time == other.time ? order < other.order : time < other.time }
    }

    private var heap: [Entry] = []
    private var pushed = 0

    var nextTime: Double { heap.isEmpty ? .infinity : heap[0].time }

    mutating func push(_ event: ConcurrencySimulation.Event, life: Int, at time: Double) {
        let new = Entry(time: time, order: pushed, event: event, life: life)
        heap.append(new)
        pushed += 1
        var child = heap.count - 1
        while child > 0, new.isBefore(heap[(child - 1) / 2]) {
            heap[child] = heap[(child - 1) / 2]
            child = (child - 1) / 2
        }
        heap[child] = new
    }

    mutating func pop() -> (event: ConcurrencySimulation.Event, life: Int)? {
        guard let last = heap.popLast() else { return nil }
        guard !heap.isEmpty else { return (last.event, last.life) }
        let first = heap[0]
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
            guard heap[child].isBefore(last) else { break }
            heap[parent] = heap[child]
            parent = child
        }
        heap[parent] = last
        return (first.event, first.life)
    }
}
