/// A loaded image by reference: each of the asynchronous functions that return it would have room for all its fields on the heap, as long
/// as it waits.
package final class LoadResult: Sendable {
    package let image: LoadedImage

    init(_ image: LoadedImage) { self.image = image }

    /// The same image, loaded from a mirror after other attempts.
    func fromMirror(_ mirror: String, attemptsBefore: Int) -> LoadResult {
        var image = image
        image.attempts += attemptsBefore
        image.details.append("from the mirror \(mirror)")
        return LoadResult(image)
    }
}

/// The cached image of a conditional request, by reference for the same reason.
final class PresentImage: Sendable {
    let found: FoundImage
    let known: HTTPValidators

    /// * `known`: nil: the request is not conditional.
    init?(_ found: FoundImage?, _ known: HTTPValidators?) {
        guard let found, let known else { return nil }
        self.found = found
        self.known = known
    }
}
