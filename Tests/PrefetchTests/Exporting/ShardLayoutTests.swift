import PrefetchModel
import Testing

@testable import Prefetch

@Suite("Layout of shards")
struct ShardLayoutTests {
    private func shards(
        _ layout: inout ShardLayout, _ entries: Int, _ files: [Int] = [], isEnd: Bool = true
    ) -> [String] {
        var found: [String] = []
        while let shard = layout.next(of: ListExtent(entries: entries, files: files, hasEnded: isEnd)) {
            found.append("\(shard.number):\(shard.entries)")
        }
        return found
    }

    @Test("A shard is so many lines, and ends with its file")
    func places() {
        var layout = ShardLayout(perShard: 3)
        // The files say nothing of the last two lines: the list has grown.
        #expect(shards(&layout, 11, [4, 0, 2, 3]) == ["0:0..<3", "1:3..<4", "2:4..<6", "3:6..<9", "4:9..<11"])
        var one = ShardLayout(perShard: 2)
        #expect(shards(&one, 5) == ["0:0..<2", "1:2..<4", "2:4..<5"])
        var empty = ShardLayout(perShard: 2)
        #expect(shards(&empty, 0) == [])
    }

    @Test("While a list is read, a shard is known once its last line is, or the end of its file")
    func reading() {
        var layout = ShardLayout(perShard: 3)
        #expect(shards(&layout, 2, isEnd: false) == [])
        #expect(shards(&layout, 4, isEnd: false) == ["0:0..<3"])
        #expect(shards(&layout, 5, [4], isEnd: false) == ["1:3..<4"])
        #expect(shards(&layout, 7, [4, 2], isEnd: false) == ["2:4..<6"])
        #expect(shards(&layout, 7, [4, 2], isEnd: false) == [])
        #expect(shards(&layout, 7, [4, 2, 1]) == ["3:6..<7"])
    }

    @Test(
        "Keys are img2dataset's: as many digits behind the shard's five as its places need",
        arguments: [
            (10_000, 0, 42, "000000042"), (10_000, 7, 42, "000070042"), (1_000, 12, 3, "00012003"), (1, 5, 0, "00005"),
            (9, 1, 8, "000018"), (10, 1, 9, "000019"), (11, 1, 10, "0000110"), (10_000, 123_456, 1, "1234560001"),
        ])
    func keys(perShard: Int, shard: Int, index: Int, key: String) {
        let place = ShardLayout.Shard(number: shard, entries: 500..<501 + index)
        #expect(ShardLayout(perShard: perShard).key(place, at: 500 + index) == key)
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
