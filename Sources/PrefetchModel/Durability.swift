/// What a power cut may lose of stored images.
public enum Durability: String, Sendable, CaseIterable {
    /// Everything that the kernel has not written yet.
    case none
    /// Nothing stored before the last sync, which precedes the report of an outcome.
    case batch
    /// Nothing that was stored: each file and its directory are synced before it counts.
    case file
}
