struct ConnectAttempts {
    private(set) var socketErrno: Int32 = 0
    /// The last refused address. `isFinal`: no setting can allow it, so no hint is given.
    private(set) var refusal: (target: String, reason: String, isFinal: Bool)?
    private(set) var dialled: [(address: IPAddress, port: Int)] = []

    mutating func begin() {
        socketErrno = 0
        refusal = nil
        dialled.removeAll(keepingCapacity: true)
    }

    mutating func wasRefused(_ target: IPAddress, port: Int, reason: String, isFinal: Bool) {
        refusal = (Endpoint(target, port: port).description, reason, isFinal)
    }

    mutating func didDial(_ target: IPAddress, port: Int) { dialled.append((target, port)) }

    mutating func didFail(_ code: Int32) { socketErrno = code }
}
