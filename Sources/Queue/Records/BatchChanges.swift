/// What a retry does otherwise than the batch before it.
package struct BatchChanges: Sendable {
    /// Settings that replace those of the same name.
    package var requests: RequestSettings
    /// How images are changed instead; nil: as before.
    package var variant: ImageVariant?
    /// Rules that replace those of the same name.
    package var rules: ImageRules

    package init(
        requests: RequestSettings = RequestSettings(), variant: ImageVariant? = nil, rules: ImageRules = ImageRules()
    ) {
        self.requests = requests
        self.variant = variant
        self.rules = rules
    }

    package func applied(to options: BatchOptions) -> BatchOptions {
        var options = options
        options.requests = options.requests.overridden(by: requests)
        options.variant = variant ?? options.variant
        options.rules = options.rules.overridden(by: rules)
        return options
    }
}
