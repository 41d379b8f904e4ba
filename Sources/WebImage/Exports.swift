// Whoever uses the library imports one module.
@_exported public import PrefetchModel
