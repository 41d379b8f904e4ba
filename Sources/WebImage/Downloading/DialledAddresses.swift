struct DialledAddresses {
    private(set) var socketErrno: Int32 = 0
    /// The last refused address, and why.
    private(set) var refusal: (target: String, why: AddressRefusal)?
    private(set) var dialled: [(address: IPAddress, port: Int)] = []

    mutating func begin() {
        socketErrno = 0
        refusal = nil
        dialled.removeAll(keepingCapacity: true)
    }

    mutating func wasRefused(_ target: IPAddress, port: Int, _ why: AddressRefusal) {
        refusal = (Endpoint(target, port: port).description, why)
    }

    mutating func didDial(_ target: IPAddress, port: Int) { dialled.append((target, port)) }

    mutating func didFail(_ code: Int32) { socketErrno = code }
}
