public import Glibc

/// A value behind a pthread mutex. Never hold it around I/O or an `await`.
///
/// Not `Synchronization.Mutex`, because ThreadSanitizer does not understand it and reports false races. A URL takes a dozen of these locks,
/// in several modules, and an unspecialised `withLock` costs more than its mutex. It is therefore inlinable, and public, since the compiler
/// (6.3) does not specialise `package` generics across modules. No product exports it.
///
/// `@unchecked Sendable`: every access to the value happens with the mutex held.
public struct Locked<Value>: @unchecked Sendable {
    @usableFromInline let storage: LockedStorage<Value>

    /// Wraps `value` with a new mutex.
    @inlinable public init(_ value: sending Value) {
        let buffer = LockedStorage<Value>.create(minimumCapacity: 1) { _ in pthread_mutex_t() }
        storage = unsafeDowncast(buffer, to: LockedStorage<Value>.self)
        storage.withUnsafeMutablePointerToHeader { _ = pthread_mutex_init($0, nil) }
        storage.withUnsafeMutablePointerToElements { $0 }.initialize(to: value)
    }

    /// Runs `body` with exclusive access to the value.
    @inlinable public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let (mutex, value) = storage.withUnsafeMutablePointers { ($0, $1) }
        pthread_mutex_lock(mutex)
        defer {
            pthread_mutex_unlock(mutex)
            // The pointers are valid only while the storage is alive.
            withExtendedLifetime(storage) {}
        }
        return try body(&value.pointee)
    }
}

/// Mutex and value in one allocation.
@usableFromInline final class LockedStorage<Value>: ManagedBuffer<pthread_mutex_t, Value> {
    deinit {
        withUnsafeMutablePointers { mutex, value in
            value.deinitialize(count: 1)
            _ = pthread_mutex_destroy(mutex)
        }
    }
}
