package import WebImage

/// What the images of a batch come to, for a report: how big they are, of which formats, and when they were stored.
package struct ImageFigures: Sendable, Equatable {
    /// Images and their bytes.
    package struct Sum: Sendable, Equatable {
        package var images = 0, bytes = 0

        package init(images: Int = 0, bytes: Int = 0) { (self.images, self.bytes) = (images, bytes) }

        mutating func add(_ size: Int) {
            images += 1
            bytes += size
        }
    }

    /// The upper ends of the size classes in bytes; the last class has none.
    package static let sizeLimits = [
        1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
    ]

    /// The most images that are named because they are big.
    package static let mostNamed = 20

    /// All that are in the cache.
    package var all = Sum()
    /// Lines that ended with an image that is not in the cache any more.
    package var missing = 0
    /// Lines whose image is in the cache of another machine.
    package var elsewhere = 0
    /// Images by size class: one more than there are limits.
    package var sizes = [Int](repeating: 0, count: sizeLimits.count + 1)
    /// By format, of which `unknown` is nobody's guess.
    package var formats: [ImageFormat: Sum] = [:]
    /// What was downloaded, by the second since 1970 at which it was stored.
    package var stored: [Int: Sum] = [:]
    /// The biggest, biggest first.
    package var largest: [ExportedLine] = []

    /// Nothing.
    package init() {}

    /// Adds a line; one that ended without an image changes nothing.
    package mutating func add(_ line: ExportedLine) {
        guard let outcome = line.result.outcome, !outcome.isSkipped else { return }
        guard let image = line.image else {
            if line.host == nil { missing += 1 } else { elsewhere += 1 }
            return
        }
        all.add(image.bytes)
        sizes[Self.sizeLimits.firstIndex { image.bytes < $0 } ?? Self.sizeLimits.count] += 1
        formats[image.format ?? .unknown, default: Sum()].add(image.bytes)
        if outcome == .downloaded, let second = image.storedAt { stored[second, default: Sum()].add(image.bytes) }
        let isBig = largest.count < Self.mostNamed || image.bytes > (largest.last?.image?.bytes ?? 0)
        guard isBig else { return }
        // Of two that are as big the one that stands first in the list.
        let place = largest.firstIndex { ($0.image?.bytes ?? 0) < image.bytes } ?? largest.count
        largest.insert(line, at: place)
        if largest.count > Self.mostNamed { largest.removeLast() }
    }
}
