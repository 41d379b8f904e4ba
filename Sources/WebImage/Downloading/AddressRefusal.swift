/// Why an address may not be dialled, in words and by kind.
struct AddressRefusal {
    let message: String
    let reason: FailureReason

    /// What no `--allow-net` opens; nil if neither the operator nor the queue has closed it.
    init?(_ policy: AddressPolicy, _ closed: BlockedEndpoints, of address: IPAddress, port: Int) {
        if let message = policy.denial(of: address, port: port) {
            (self.message, reason) = (message, .deniedNetwork)
        } else if let message = closed.refusal(of: address, port: port) {
            (self.message, reason) = (message, .queueRedis)
        } else {
            return nil
        }
    }

    init(closed message: String) { (self.message, reason) = (message, .closedNetwork) }
}
