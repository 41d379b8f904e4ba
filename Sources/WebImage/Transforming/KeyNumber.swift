/// Numbers in transformer keys, written as SDWebImage's `%f` does.
enum KeyNumber {
    /// Six decimals: `0.785398`
    static func text(_ value: Double) -> String {
        let millionths = Int((abs(value) * 1_000_000).rounded())
        let decimals = String(millionths % 1_000_000)
        return (value < 0 && millionths > 0 ? "-" : "") + "\(millionths / 1_000_000)."
            + String(repeating: "0", count: 6 - decimals.count) + decimals
    }

    static func text(_ value: Int) -> String { "\(value).000000" }

    static func text(_ value: Bool) -> String { value ? "1" : "0" }
}
