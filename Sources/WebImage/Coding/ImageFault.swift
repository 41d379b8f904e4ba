struct ImageFault: Error {
    enum Kind: Equatable {
        /// The bytes end inside the image.
        case incomplete
        case damaged, unsupported
        /// More than a limit of ours, or of a library, and which one. The message names it and the option that helps.
        case overLimit(FailureReason)
        /// A local failure, not the image's fault.
        case outOfMemory
        /// It has ended the processes that were to decode it.
        case crashed
        /// Somebody has killed the process that was to decode it.
        case killed
        /// This machine could not do it.
        case machine
        /// Nobody waits for it any more.
        case cancelled
    }

    let kind: Kind
    let message: String
    /// errno(3).
    let code: Int32?
    /// Whether the same image may do better in a new process.
    let mayPass: Bool

    init(_ kind: Kind, _ message: String, code: Int32? = nil, mayPass: Bool = false) {
        self.kind = kind
        self.message = message
        self.code = code
        self.mayPass = mayPass
    }

    var isWorthAnotherTry: Bool { mayPass || kind == .crashed || kind == .killed }

    var error: WebImageError {
        var error = WebImageError(errorCode, message, underlyingCode: code)
        error.isIncompleteImage = kind == .incomplete
        if case .overLimit(let reason) = kind { error.reason = reason }
        // Others may have the memory for it.
        error.isOfOneFile = kind == .killed
        return error
    }

    private var errorCode: WebImageError.Code {
        switch kind {
        case .outOfMemory, .killed, .machine: .localFault
        case .crashed: .decoderCrashed
        case .cancelled: .cancelled
        case .unsupported: .unsupportedFormat
        case .overLimit: .tooLarge
        case .incomplete, .damaged: .badImageData
        }
    }
}
