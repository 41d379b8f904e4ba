// The values of its records are part of this module's interface.
@_exported public import PrefetchModel
