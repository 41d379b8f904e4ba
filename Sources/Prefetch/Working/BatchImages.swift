internal import Queue
internal import WebImage

/// What a batch stores of its images, and under which keys.
struct BatchImages: Sendable {
    /// The keys of what is stored.
    let keyRule: CacheKeyRule
    private let originalRule: CacheKeyRule
    private let recipe: VariantRecipe?
    /// The options in words: batches with the same ask in the same way.
    private let settings: String
    private let rules: ImageRules
    /// The batch's own rules; nil: every image is taken.
    let headerRules: HeaderRules?

    init(_ options: BatchOptions) {
        keyRule = CacheKeyRule(options)
        originalRule = CacheKeyRule.original(options)
        rules = options.rules
        settings = options.encoded
        headerRules = HeaderRules(rules)
        recipe = options.storedVariant.map(VariantRecipe.init)
    }

    /// A load of the image as the batch stores it.
    /// * `key`: of what is stored.
    /// * `settings`: of its line.
    /// - Throws: as ``CacheKeyRule/key(for:_:)``.
    func request(_ url: String, key: String, _ settings: URLSettings?) throws(WebImageError) -> LoadRequest {
        // A key takes as long as its pattern, so it is made once where it is that of what is fetched.
        let original = recipe == nil ? key : try originalRule.key(for: url, settings)
        var request = LoadRequest(url: url, key: original)
        if let recipe { request.apply(recipe) }
        (request.rules, request.settings) = (headerRules, self.settings)
        if let own = settings?.rules, !own.isEmpty {
            request.rules = HeaderRules(rules.taking(Set(own.words.keys), of: own))
        }
        return request
    }
}
