extension Wording {
    /// 1 URL, 4,812 URLs.
    ///
    /// * `plural`: where another s does not make it.
    static func count(_ number: Int, _ noun: String, _ plural: String? = nil) -> String {
        "\(count(number)) \(number == 1 ? noun : plural ?? noun + "s")"
    }
}
