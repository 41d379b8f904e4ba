/// What a pass over all keys of Redis has found of a queue: keys whose names no other key tells for certain.
struct FoundKeys {
    /// Whoever has a hash of claims, registered or not, sorted.
    var owners: [String] = []
    /// Batches that have a hash, whether the queue lists them or not, sorted.
    var batches: [String] = []
    /// Batches that have keys and no hash, so that nothing says what they were, sorted.
    var remains: [String] = []
    /// Keys of workers, hosts and sites, and of batches that the queue does not list, with the types they must have, sorted.
    var others: [PrefetchKeys.Typed] = []
}
