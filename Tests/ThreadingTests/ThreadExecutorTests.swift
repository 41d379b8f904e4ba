import Glibc
import Testing
import Threading

/// An actor on a thread of its own, as the Redis connection is.
private actor Counter {
    nonisolated let executor: ThreadExecutor
    private(set) var count = 0

    init(executor: ThreadExecutor) { self.executor = executor }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func increment() -> pthread_t {
        count += 1
        return pthread_self()
    }

    nonisolated func incrementFromTurn() {
        assumeIsolated { $0.count += 1 }
    }
}

/// Names of the threads of this process, from /proc.
private func threadNames() -> [String] {
    guard let directory = opendir("/proc/self/task") else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let id = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        guard let file = fopen("/proc/self/task/\(id)/comm", "r") else { continue }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 32)
        if fgets(&line, 32, file) != nil {
            names.append(
                String(decoding: line.prefix { $0 != 10 && $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
    }
    return names
}

@Suite("A thread as an executor", .timeLimit(.minutes(5)))
struct ThreadExecutorTests {
    @Test("Every call of an actor runs on its thread, one at a time")
    func oneThread() async {
        let executor = ThreadExecutor(name: "t-one")
        let counter = Counter(executor: executor)
        let threads = await withTaskGroup(of: pthread_t.self) { group in
            for _ in 0..<200 { group.addTask { await counter.increment() } }
            return await group.reduce(into: Set<pthread_t>()) { $0.insert($1) }
        }
        #expect(threads.count == 1 && !threads.contains(pthread_self()))
        #expect(await counter.count == 200)
        #expect(!executor.isCurrent)
        #expect(threadNames().contains("t-one"))
        executor.stop()
    }

    @Test("stop() lets the jobs that are there run, then the thread ends")
    func stop() async {
        let executor = ThreadExecutor(name: "t-stop")
        let counter = Counter(executor: executor)
        for _ in 0..<10 { _ = await counter.increment() }
        #expect(threadNames().contains("t-stop"))
        executor.stop()
        while threadNames().contains("t-stop") { await Task.yield() }
        executor.stop()
    }

    @Test("A loop's turn runs on the thread, isolated to the actor, and is woken by a job")
    func turns() async {
        struct State {
            var turns = 0
            var wakes = 0
            var asleep = false
        }
        let state = Locked(State())
        let holder = Locked<Counter?>(nil)
        let pipe = Pipe()
        let executor = ThreadExecutor(
            name: "t-turn",
            wake: {
                state.withLock { $0.wakes += 1 }
                pipe.write()
            },
            turn: { maySleep in
                holder.withLock { $0 }?.incrementFromTurn()
                state.withLock {
                    $0.turns += 1
                    $0.asleep = maySleep
                }
                // Remembers a byte that was written before it polls, as curl_multi_wakeup is remembered.
                if maySleep { pipe.read() }
                state.withLock { $0.asleep = false }
            })
        let counter = Counter(executor: executor)
        holder.withLock { $0 = counter }
        for round in 1...50 {
            while !state.withLock({ $0.asleep }) { await Task.yield() }
            _ = await counter.increment()
            #expect(state.withLock { $0.turns } >= round)
        }
        let count = await counter.count
        #expect(count >= 50 + 49)
        #expect(state.withLock { $0.wakes } >= 50)
        holder.withLock { $0 = nil }
        executor.stop()
        while threadNames().contains("t-turn") { await Task.yield() }
    }

    @Test("An actor whose deinit stops its executor leaves no thread behind")
    func lifetime() async {
        for _ in 0..<20 {
            let owner = Owner()
            await owner.work()
        }
        while threadNames().contains("t-owner") { await Task.yield() }
    }
}

private actor Owner {
    private nonisolated let executor = ThreadExecutor(name: "t-owner")

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    deinit { executor.stop() }

    func work() {}
}

/// A byte sent is a byte received, also when it was sent first.
private final class Pipe: Sendable {
    private let ends: (Int32, Int32)

    init() {
        var ends: [Int32] = [0, 0]
        pipe(&ends)
        self.ends = (ends[0], ends[1])
    }

    deinit {
        close(ends.0)
        close(ends.1)
    }

    func write() {
        var byte: UInt8 = 1
        Glibc.write(ends.1, &byte, 1)
    }

    func read() {
        var bytes = [UInt8](repeating: 0, count: 64)
        Glibc.read(ends.0, &bytes, bytes.count)
    }
}
