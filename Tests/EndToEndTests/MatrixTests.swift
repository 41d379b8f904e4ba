import Glibc
import TestSupport
import Testing

/// A cut of `scripts/chaos matrix` with the programs that were built together with the tests.
@Suite("The matrix of faults", .timeLimit(.minutes(5)))
struct MatrixTests: CommandSuite {
    @Test("A cut of the matrix in which every kind of fault appears has no red cell", .thorough)
    func cut() async throws {
        let matrix = try await chaos(["matrix", "--cut", "24", "--seed", "398", "--verbose"])
        let lines = matrix.stdout.split(separator: "\n")
        #expect(lines.last?.hasPrefix("matrix: 24 cells, 0 red, ") == true, "\(matrix.stdout)")
        for kind in [
            "/error ", "/error-ran ", "/cut-before ", "/cut-after ", "/late ", "/type:", "/lost:", "/EIO ", "/ENOSPC ",
            "/EMFILE ", "/EACCES ", "/killed-before ", "/killed-after ", "/symlink ", "/directory ", "/fifo ",
        ] {
            #expect(lines.contains { $0.contains(kind) && !$0.hasPrefix("red") }, "\(kind): \(matrix.stdout)")
        }
    }
}
