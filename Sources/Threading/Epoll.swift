internal import CLinux
internal import Glibc

/// An epoll instance with its event buffer and the eventfd that interrupts its sleep; closed with its last owner.
///
/// The loop's thread owns it together with the loop, since it may sleep here while the loop is released.
package final class Epoll: Sendable {
    /// What became of a descriptor; one that is broken is readable and writable too, so that whoever tries learns why.
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

    /// Nil where no descriptors are left.
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

    /// Interrupts the sleep, from any thread; remembered where there is none.
    package func wake() {
        var one: UInt64 = 1
        _ = write(bell, &one, 8)
    }

    /// Asks for events of a descriptor from now on, in place of what was asked before.
    ///
    /// * `token`: comes back with each event; not `UInt64.max`.
    /// * `isNew`: whether it is most likely not watched yet; saves a call where that is right.
    package func watch(
        _ file: Int32, token: UInt64, reads: Bool = true, writes: Bool, isNew: Bool = false
    ) {
        var event = epoll_event()
        event.events = (reads ? EPOLLIN.rawValue | EPOLLRDHUP.rawValue : 0) | (writes ? EPOLLOUT.rawValue : 0)
        event.data.u64 = token
        let (first, second) = isNew ? (EPOLL_CTL_ADD, EPOLL_CTL_MOD) : (EPOLL_CTL_MOD, EPOLL_CTL_ADD)
        if epoll_ctl(descriptor, first, file, &event) < 0 { epoll_ctl(descriptor, second, file, &event) }
    }

    /// No event for the descriptor any more; closing it does the same.
    package func forget(_ file: Int32) {
        var event = epoll_event()
        epoll_ctl(descriptor, EPOLL_CTL_DEL, file, &event)
    }

    /// No event for the descriptor until it is watched again.
    package func pause(_ file: Int32) {
        var event = epoll_event()
        epoll_ctl(descriptor, EPOLL_CTL_MOD, file, &event)
    }

    /// Sleeps until something is ready, at most `milliseconds` (-1: for ever). Only on the loop's thread.
    package func wait(milliseconds: Int32) -> Int {
        max(0, Int(epoll_wait(descriptor, events, Int32(Self.capacity), milliseconds)))
    }

    /// Event `index` of the last wait; nil for the bell.
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
