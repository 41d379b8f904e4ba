internal import CLinux
internal import Glibc

/// An epoll instance with its event buffer and the eventfd that interrupts its sleep; closed when the last reference is released. The
/// loop's thread holds a reference of its own, because it may sleep here while the loop is released.
package final class Epoll: Sendable {
    /// Readiness of a descriptor. A broken one is also reported readable and writable, so that the next read or write returns the error.
    package struct Event {
        package var token: UInt64
        package var isReadable: Bool
        package var isWritable: Bool
        package var isBroken: Bool
    }

    private static let capacity = 256
    private static let wakeToken = UInt64.max
    private let descriptor: Int32
    private let bell: Int32
    private let buffer: SendablePointer

    /// Nil if no descriptors are left.
    package init?() {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        bell = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        buffer = SendablePointer(
            UnsafeMutableRawPointer(UnsafeMutablePointer<epoll_event>.allocate(capacity: Self.capacity)))
        guard descriptor >= 0, bell >= 0 else { return nil }
        watch(bell, token: Self.wakeToken, writes: false, isNew: true)
    }

    deinit {
        buffer.pointer.deallocate()
        if descriptor >= 0 { close(descriptor) }
        if bell >= 0 { close(bell) }
    }

    /// Interrupts the sleep, from any thread; remembered if the loop is not sleeping.
    package func wake() {
        var one: UInt64 = 1
        _ = write(bell, &one, 8)
    }

    /// Sets the events to watch on a descriptor, replacing earlier ones.
    /// * `token`: returned with each event; not `UInt64.max`.
    /// * `isNew`: the descriptor is most likely not watched yet; saves a system call if true.
    package func watch(
        _ file: Int32, token: UInt64, reads: Bool = true, writes: Bool, isNew: Bool = false
    ) {
        var event = epoll_event()
        event.events = (reads ? EPOLLIN.rawValue | EPOLLRDHUP.rawValue : 0) | (writes ? EPOLLOUT.rawValue : 0)
        event.data.u64 = token
        let (first, second) = isNew ? (EPOLL_CTL_ADD, EPOLL_CTL_MOD) : (EPOLL_CTL_MOD, EPOLL_CTL_ADD)
        if epoll_ctl(descriptor, first, file, &event) < 0 { epoll_ctl(descriptor, second, file, &event) }
    }

    package func forget(_ file: Int32) {
        var event = epoll_event()
        epoll_ctl(descriptor, EPOLL_CTL_DEL, file, &event)
    }

    /// Suppresses events for the descriptor until ``watch(_:token:reads:writes:isNew:)`` is called again.
    package func pause(_ file: Int32) {
        var event = epoll_event()
        epoll_ctl(descriptor, EPOLL_CTL_MOD, file, &event)
    }

    /// Sleeps until an event is ready, for at most `milliseconds` (-1: no limit). Only on the loop's thread.
    package func wait(milliseconds: Int32) -> Int {
        max(0, Int(epoll_wait(descriptor, events, Int32(Self.capacity), milliseconds)))
    }

    /// Event `index` of the last wait; nil for the wake-up eventfd.
    package func event(_ index: Int) -> Event? {
        let event = events[index]
        guard event.data.u64 != Self.wakeToken else {
            var count: UInt64 = 0
            _ = read(bell, &count, 8)
            return nil
        }
        let broken = EPOLLERR.rawValue | EPOLLHUP.rawValue | EPOLLRDHUP.rawValue
        return Event(
            token: event.data.u64, isReadable: event.events & (EPOLLIN.rawValue | broken) != 0,
            isWritable: event.events & (EPOLLOUT.rawValue | broken) != 0,
            isBroken: event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0)
    }

    private var events: UnsafeMutablePointer<epoll_event> {
        buffer.pointer.assumingMemoryBound(to: epoll_event.self)
    }
}
