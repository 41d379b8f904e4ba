struct ImageFault: Error {
    enum Kind: Equatable {
        /// The bytes end inside the image.
        case incomplete
        case damaged, unsupported
        /// More than a limit of ours, or of a library, and which one. The message names it and the option that helps.
        case overLimit(FailureReason)
        /// A local failure, not the image's fault.
        case outOfMemory
    }

    let kind: Kind
    let message: String

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    var error: WebImageError {
        var error = WebImageError(code, message)
        error.isIncompleteImage = kind == .incomplete
        if case .overLimit(let reason) = kind { error.reason = reason }
        return error
    }

    private var code: WebImageError.Code {
        switch kind {
        case .outOfMemory: .localFault
        case .unsupported: .unsupportedFormat
        case .overLimit: .tooLarge
        case .incomplete, .damaged: .badImageData
        }
    }
}
