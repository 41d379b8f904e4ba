import Glibc
import Prefetch
import Testing

@testable import PrefetchCommands

@Suite("What a run says of a worker's end")
struct WorkerDeathTests {
    @Test("The kernel is named only where the run itself has not killed it")
    func texts() {
        let end = ChildEnd.signalled(SIGKILL)
        #expect(
            RunWorkers.text(.init(pid: 7, end: end), name: "h:7")
                == "h:7 ended by signal 9 (SIGKILL; the kernel sends it when memory runs out); its URLs go to the other workers"
        )
        #expect(
            RunWorkers.text(.init(pid: 7, end: end, isKilledHere: true), name: "h:7")
                == "h:7 was killed by this run, since it had not stopped when told to; its URLs are given back")
    }
}
