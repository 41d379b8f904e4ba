// The values of its records are part of it.
@_exported public import PrefetchModel
