/// Why a check did not pass, before it becomes a ``WebImageError``.
struct ImageFault: Error {
    enum Kind {
        /// The bytes end inside the image.
        case incomplete
        case damaged, overLimit, unsupported
        /// A decode takes more memory than one may have.
        case overMemory
        /// Not the image's fault.
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
        return error
    }

    private var code: WebImageError.Code {
        switch kind {
        case .outOfMemory: .localFault
        case .unsupported: .unsupportedFormat
        case .overMemory: .tooLarge
        case .incomplete, .damaged, .overLimit: .badImageData
        }
    }
}
