/// Keys of a queue that only a scan of Redis finds, because no other key lists them reliably. All sorted.
package struct FoundKeys {
    /// Workers with a hash of claims, registered or not.
    package var owners: [String] = []
    /// Batches with a hash, whether the queue lists them or not.
    package var batches: [String] = []
    /// Batches with keys but no hash, so of unknown state.
    package var remains: [String] = []
    /// Keys of workers, hosts and sites, and of batches that the queue does not list, with their required types.
    var others: [PrefetchKeys.Typed] = []
}
