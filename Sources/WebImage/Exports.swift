// Users of the library import only one module.
@_exported public import PrefetchModel
