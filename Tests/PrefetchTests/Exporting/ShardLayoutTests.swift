import PrefetchModel
import Testing

@testable import Prefetch

@Suite("Layout of shards")
struct ShardLayoutTests {
    @Test("A shard is so many lines, and ends with its file")
    func places() {
        var layout = ShardLayout(perShard: 3, files: [4, 0, 2, 3])
        let places = (0..<11).map { _ in layout.next() }
        // The files say nothing of the last two lines: the list has grown.
        #expect(
            places.map { "\($0.shard):\($0.index)" }
                == ["0:0", "0:1", "0:2", "1:0", "2:0", "2:1", "3:0", "3:1", "3:2", "4:0", "4:1"])
        var one = ShardLayout(perShard: 2, files: [])
        #expect((0..<5).map { _ in one.next().shard } == [0, 0, 1, 1, 2])
    }

    @Test(
        "Keys are img2dataset's: as many digits behind the shard's five as its places need",
        arguments: [
            (10_000, 0, 42, "000000042"), (10_000, 7, 42, "000070042"), (1_000, 12, 3, "00012003"), (1, 5, 0, "00005"),
            (9, 1, 8, "000018"), (10, 1, 9, "000019"), (11, 1, 10, "0000110"), (10_000, 123_456, 1, "1234560001"),
        ])
    func keys(perShard: Int, shard: Int, index: Int, key: String) {
        #expect(
            ShardLayout(perShard: perShard, files: []).key(ShardLayout.Place(shard: shard, index: index)) == key)
    }

    @Test("A column has the kind of all its values")
    func kinds() {
        func kind(_ values: [String]) -> TypedColumn.Kind? {
            values.compactMap { TypedColumn.Kind(.json($0)) }.reduce(nil) { $0?.joined(with: $1) ?? $1 }
        }
        #expect(kind(["1", "null", "-20"]) == .long && kind(["1", "0.5"]) == .double && kind(["1e3"]) == .double)
        #expect(kind(["99999999999999999999"]) == .double && kind(["true", "false"]) == .bool && kind(["null"]) == nil)
        #expect(kind(["[1]"]) == .text && kind(["1", "true"]) == .text && TypedColumn.Kind(.text("1")) == .text)
    }
}
