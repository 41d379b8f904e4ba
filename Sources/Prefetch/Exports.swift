// Users of the library import one module.
@_exported public import Queue
