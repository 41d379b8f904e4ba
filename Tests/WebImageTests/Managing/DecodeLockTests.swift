import TestSupport
import Testing
import Threading
import WebImage

@Suite("Turns to decode", .timeLimit(.minutes(5)))
struct DecodeTurnsTests {
    private final class Began: Sendable {
        private let all = Locked<[String]>([])
        var names: [String] { all.withLock { $0 } }
        func add(_ name: String) { all.withLock { $0.append(name) } }
    }

    @Test("Who wants to be alone waits for those who are there, is overtaken by nobody, and keeps all others out")
    func alone() async throws {
        let turns = DecodeLock()
        let began = Began()
        let names: () -> [String] = { began.names }
        func ask(_ name: String, alone: Bool) async throws {
            let before = turns.waiting
            Task {
                await turns.begin(alone: alone)
                began.add(name)
            }
            try await until { turns.waiting == before + 1 || names().contains(name) }
        }
        await turns.begin(alone: false)
        try await ask("beside", alone: false)
        #expect(names() == ["beside"])
        try await ask("alone", alone: true)
        try await ask("late", alone: false)
        try await ask("later", alone: false)
        try await ask("alone again", alone: true)
        #expect(names() == ["beside"] && turns.waiting == 4)
        turns.end()
        #expect(turns.waiting == 4)
        turns.end()
        try await until { names() == ["beside", "alone"] }
        turns.end()
        try await until { names().count == 4 }
        #expect(Set(names().suffix(2)) == ["late", "later"] && turns.waiting == 1)
        turns.end()
        turns.end()
        try await until { names().last == "alone again" }
        turns.end()
        await turns.begin(alone: true)
        turns.end()
    }
}
