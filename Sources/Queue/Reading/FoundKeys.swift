/// What a pass over all keys of Redis has found of a queue: keys whose names no other key tells for certain.
package struct FoundKeys {
    /// Whoever has a hash of claims, registered or not, sorted.
    package var owners: [String] = []
    /// Batches that have a hash, whether the queue lists them or not, sorted.
    package var batches: [String] = []
    /// Batches that have keys and no hash, so that nothing says what they were, sorted.
    package var remains: [String] = []
    /// Keys of workers, hosts and sites, and of batches that the queue does not list, with the types they must have, sorted.
    var others: [PrefetchKeys.Typed] = []
}
