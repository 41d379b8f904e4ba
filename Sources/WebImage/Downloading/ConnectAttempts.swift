/// Where the connections of one transfer went, and why one was not made.
struct ConnectAttempts {
    /// Of socket(2), where it failed; 0: it did not.
    private(set) var socketErrno: Int32 = 0
    /// The last address that was refused. `isFinal`: nobody can open it, so nobody is told how.
    private(set) var refusal: (target: String, reason: String, isFinal: Bool)?
    /// The addresses that were dialled.
    private(set) var dialled: [(address: IPAddress, port: Int)] = []

    mutating func begin() {
        socketErrno = 0
        refusal = nil
        dialled.removeAll(keepingCapacity: true)
    }

    mutating func wasRefused(_ target: IPAddress, port: Int, reason: String, isFinal: Bool) {
        refusal = (target.isIPv6 ? "[\(target)]:\(port)" : "\(target):\(port)", reason, isFinal)
    }

    mutating func didDial(_ target: IPAddress, port: Int) { dialled.append((target, port)) }

    mutating func didFail(_ code: Int32) { socketErrno = code }
}
