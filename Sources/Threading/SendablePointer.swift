/// Carries a C handle to the one thread that uses it.
///
/// `@unchecked Sendable`: the pointer is only carried here. The code that unwraps it states why its use is exclusive, or that the C
/// function is documented as callable from any thread (`curl_multi_wakeup`).
package struct SendablePointer: @unchecked Sendable {
    package let pointer: UnsafeMutableRawPointer

    package init(_ pointer: UnsafeMutableRawPointer) {
        self.pointer = pointer
    }

    package init(_ pointer: OpaquePointer) {
        self.pointer = UnsafeMutableRawPointer(pointer)
    }
}
