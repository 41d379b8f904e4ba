internal import Queue
internal import WebImage

/// What a batch stores of its images, and under which keys.
struct BatchImages: Sendable {
    /// The keys of what is stored.
    let keyRule: CacheKeyRule
    private let originalRule: CacheKeyRule
    private let recipe: VariantRecipe?

    init(_ options: BatchOptions) {
        keyRule = CacheKeyRule(options)
        originalRule = CacheKeyRule.original(options)
        let transformsAnimations = options.ofLoads.contains(.transformAnimatedImage)
        recipe = options.storedVariant.map { VariantRecipe($0, transformsAnimations: transformsAnimations) }
    }

    /// A load of the image as the batch stores it.
    func request(_ url: String) -> LoadRequest {
        var request = LoadRequest(url: url, key: originalRule.key(for: url))
        if let recipe { request.apply(recipe) }
        return request
    }
}
