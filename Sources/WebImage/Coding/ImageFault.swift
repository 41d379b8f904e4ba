struct ImageFault: Error {
    enum Kind {
        /// The bytes end inside the image.
        case incomplete
        case damaged, overLimit, unsupported
        /// The decode exceeds the memory limit of a single one.
        case overMemory
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
