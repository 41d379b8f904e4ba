extension DiskCache {
    /// How many images there are and the bytes they take of the disk, as all processes have noted; nil where nobody has counted yet. Costs no
    /// walk.
    package func known() -> (count: Int, size: Int)? {
        account?.refresh()
        return account?.totals.map { ($0.count, $0.size) }
    }
}
