internal import CLinux
internal import Glibc
internal import Threading

/// An epoll instance with its event buffer and the eventfd that interrupts its sleep; closed with its last owner.
///
/// The loop's thread owns it together with the loop, since it may sleep here while the loop is released.
final class Epoll: Sendable {
    /// What a descriptor was watched for.
    struct Event {
        var token: UInt64
        var isReadable: Bool
        var isWritable: Bool
    }

    private static let capacity = 256
    private static let wakeToken = UInt64.max
    private let descriptor: Int32
    private let bell: Int32
    private let buffer: SendablePointer

    init() throws(OriginError) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        bell = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        buffer = SendablePointer(
            UnsafeMutableRawPointer(UnsafeMutablePointer<epoll_event>.allocate(capacity: Self.capacity)))
        guard descriptor >= 0, bell >= 0 else { throw OriginError("cannot make an epoll instance") }
        watch(bell, token: Self.wakeToken, writes: false)
    }

    deinit {
        buffer.pointer.deallocate()
        if descriptor >= 0 { close(descriptor) }
        if bell >= 0 { close(bell) }
    }

    /// Interrupts the sleep, from any thread; remembered where there is none.
    func wake() {
        var one: UInt64 = 1
        _ = write(bell, &one, 8)
    }

    func watch(_ file: Int32, token: UInt64, writes: Bool) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue | EPOLLRDHUP.rawValue | (writes ? EPOLLOUT.rawValue : 0)
        event.data.u64 = token
        if epoll_ctl(descriptor, EPOLL_CTL_MOD, file, &event) < 0 { epoll_ctl(descriptor, EPOLL_CTL_ADD, file, &event) }
    }

    /// No event for the descriptor until it is watched again.
    func pause(_ file: Int32) {
        var event = epoll_event()
        epoll_ctl(descriptor, EPOLL_CTL_MOD, file, &event)
    }

    /// Sleeps until something is ready, at most `milliseconds` (-1: for ever). Only on the loop's thread.
    func wait(milliseconds: Int32) -> Int {
        max(0, Int(epoll_wait(descriptor, events, Int32(Self.capacity), milliseconds)))
    }

    /// Event `index` of the last wait; nil for the bell.
    func event(_ index: Int) -> Event? {
        let event = events[index]
        guard event.data.u64 != Self.wakeToken else {
            var count: UInt64 = 0
            _ = read(bell, &count, 8)
            return nil
        }
        let broken = EPOLLERR.rawValue | EPOLLHUP.rawValue | EPOLLRDHUP.rawValue
        return Event(
            token: event.data.u64, isReadable: event.events & (EPOLLIN.rawValue | broken) != 0,
            isWritable: event.events & (EPOLLOUT.rawValue | broken) != 0)
    }

    private var events: UnsafeMutablePointer<epoll_event> {
        buffer.pointer.assumingMemoryBound(to: epoll_event.self)
    }
}
