import Glibc
import Testing

@testable import Prefetch

@Suite("What a lost worker leaves", .timeLimit(.minutes(5)))
struct LostWorkerTests {
    private func suspect(_ claim: String, _ position: Int, of worker: String = "w") -> DecodeNotes.Suspect {
        DecodeNotes.Suspect(claim: claim, position: position, worker: worker)
    }

    private func writer(_ notes: DecodeNotes, _ worker: Int) throws -> DecodeNotes.Writer {
        try #require(DecodeNotes.Writer(inherited: dup(notes.descriptor), worker: worker))
    }

    @Test("Notes are those of their worker, as long as they are not taken back")
    func notes() throws {
        let notes = try DecodeNotes(workers: 2)
        let (first, second) = (try writer(notes, 0), try writer(notes, 1))
        let places = (0..<3).map { first.begin(suspect("b:256:256@n", $0)) }
        _ = second.begin(suspect("ä:0:1@", 0))
        try first.end(#require(places[1]))
        #expect(notes.take(0).map(\.position) == [0, 2])
        #expect(notes.take(1) == [suspect("ä:0:1@", 0)])
        #expect(notes.take(0) == [] && notes.take(1) == [] && notes.take(2) == [])
        // A new worker in the same place begins with all places free.
        let next = try writer(notes, 0)
        #expect((0..<64).compactMap { next.begin(suspect("b:0:256@n", $0)) }.count == 64)
        #expect(next.begin(suspect("b:0:256@n", 64)) == nil)
        next.end(63)
        let long = String(repeating: "x", count: 244)
        #expect(next.begin(suspect(long + "yy", 0)) == nil)
        #expect(next.begin(suspect(long, 0)) == 63)
        #expect(notes.take(0).map(\.position) == Array(0..<63) + [0])
    }

    @Test("There are no notes in another file, in a short one, and in none")
    func noNotes() throws {
        let notes = try DecodeNotes(workers: 1)
        #expect(DecodeNotes.Writer(inherited: dup(notes.descriptor), worker: 1) == nil)
        #expect(DecodeNotes.Writer(inherited: dup(notes.descriptor), worker: -1) == nil)
        #expect(DecodeNotes.Writer(inherited: open("/dev/null", O_RDWR), worker: 0) == nil)
        #expect(DecodeNotes.Writer(inherited: 1_000_000, worker: 0) == nil)
        #expect(DecodeNotes.Writer(inherited: 0, worker: 0) == nil)
    }

    @Test("The URLs that were being decoded become jobs of their own, and only they are to blame")
    func blame() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [5, 2])
        try await f.join("w", "v")
        let claims = try await f.claim("w", 1, count: 2)
        let name = claims[0].name
        let lost = LostWorker("w", queue: f.queue)
        #expect(await lost.giveBack(blaming: [1, 4].map { suspect(name, $0) }))
        #expect(try await f.queue.workers.names() == ["v"])
        #expect(try await f.findings("b") == [])
        let parts = try await f.claim("v", 1, count: 9).sorted { $0.job.base < $1.job.base }
        #expect(parts.map(\.job.name) == ["b:0:1", "b:1:1", "b:2:2", "b:4:1", "b:5:2"])
        #expect(parts.map(\.marks) == [0, 1, 0, 1, 0] && parts.map(\.deliveries) == [0, 1, 0, 1, 0])
        for part in parts { try await f.finish(part.job, "v") }
        #expect(try await f.field("state", of: "b") == "done")
        #expect(try await f.findings("b") == [])
    }

    @Test("A URL narrows three times: a fourth death is none that brings its end closer")
    func finite() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [1])
        var narrows: [Bool] = []
        var marks: [Int] = []
        for death in 0..<5 {
            try await f.join("w\(death)")
            let claim = try await f.claim("w\(death)", 1)[0]
            marks.append(claim.marks)
            // The mark in Redis and the note are of one death.
            try await f.queue.jobs.mark(worker: "w\(death)", claim: claim.name)
            narrows.append(
                await LostWorker("w\(death)", queue: f.queue)
                    .giveBack(blaming: [suspect(claim.name, 0, of: "w\(death)")]))
        }
        #expect(marks == [0, 1, 2, 3, 4])
        #expect(narrows == [true, true, true, false, false])
        #expect(try await f.findings("b") == [])
    }

    @Test("A death without a note counts for all its jobs, one by our own hand for none; neither narrows")
    func others() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2, 2])
        func deliveries(_ worker: String, _ suspects: [DecodeNotes.Suspect]?) async throws -> [Int] {
            try await f.join(worker)
            let claims = try await f.claim(worker, 1, count: 2)
            #expect(await LostWorker(worker, queue: f.queue).giveBack(blaming: suspects) == false)
            return claims.map(\.deliveries)
        }
        #expect(try await deliveries("a", []) == [0, 0])
        #expect(try await deliveries("b", nil) == [1, 1])
        // Notes of claims that it does not have, and of positions that the job does not have.
        let strange = [("b:0:2@other", 0), ("b:9:2@b", 0), ("b:0:2@b", 7), ("", -1)]
        #expect(try await deliveries("c", strange.map { suspect($0.0, $0.1, of: "c") }) == [1, 1])
        #expect(try await deliveries("d", nil) == [2, 2])
        #expect(try await f.findings("b") == [])
    }

    @Test("A worker that was lost and joined again is found by the name in its notes")
    func rejoined() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2])
        try await f.join("w.1", "v")
        let claim = try await f.claim("w.1", 1)[0]
        // Another worker's name is none that it can have.
        for other in ["w", "x"] {
            #expect(
                await LostWorker(other, queue: f.queue).giveBack(blaming: [suspect(claim.name, 1, of: "v")]) == false)
        }
        #expect(try await f.queue.workers.names().sorted() == ["v", "w.1"])
        #expect(await LostWorker("w", queue: f.queue).giveBack(blaming: [suspect(claim.name, 1, of: "w.1")]))
        #expect(try await f.queue.workers.names() == ["v"])
        #expect(try await f.claim("v", 1, count: 2).map(\.marks) == [0, 1])
        #expect(try await f.findings("b") == [])
    }
}
