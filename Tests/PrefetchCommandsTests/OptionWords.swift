import ArgumentParser

@testable import PrefetchCommands

/// The options of a batch by themselves, as in a command line.
struct BatchWords: ParsableArguments, BatchOptionGroups {
    @OptionGroup var requests: RequestArguments
    @OptionGroup var load: LoadOptionArguments
    @OptionGroup var checks: CheckArguments
    @OptionGroup var selection: RuleArguments
    @OptionGroup var variant: VariantArguments
    @OptionGroup var failed: FailedURLArguments
    @OptionGroup var record: RecordArguments

    func validate() throws { try batch.validate() }
}

/// The options of a worker by themselves.
struct FetchWords: ParsableArguments, FetchOptionGroups {
    @OptionGroup var transfers: TransferOptions
    @OptionGroup var network: NetworkOptions
    @OptionGroup var credentials: CredentialOptions
    @OptionGroup var cacheLimits: CacheLimitOptions
    @OptionGroup var readOnly: ReadOnlyCacheOptions
}
