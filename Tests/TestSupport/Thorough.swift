internal import Glibc
package import Testing

/// Whether this is `scripts/test --all`.
package let isThorough = getenv("TEST_ALL") != nil

extension Trait where Self == ConditionTrait {
    /// Minutes long, or with tools that the other tests do without.
    package static var thorough: Self { .enabled(if: isThorough, "left to scripts/test --all") }
}
