internal import Glibc

/// A deterministic set of images with the typical kinds and sizes of the web: 70 % baseline JPEG, 10 % progressive JPEG, 15 % PNG, 5 % GIF
/// and WebP; sizes are log-normal with a 95th percentile of 6.9 medians and a mean of about 2. Image n depends only on seed, median and n,
/// so that a small corpus is a prefix of a large one.
package struct Corpus: Sendable {
    package let count: Int
    /// The same seed gives the same bytes with the same versions of the image libraries.
    package let seed: UInt64
    package let median: Int

    package init(count: Int, seed: UInt64 = 1, median: Int = 27_000) {
        self.count = count
        self.seed = seed
        self.median = median
    }

    package struct Image: Sendable, Equatable {
        /// Path relative to the corpus' folder; a subfolder has a hundred images.
        package let path: String
        package let kind: GeneratedImage.Kind
        package let seed: UInt64
        package let approximateBytes: Int

        package func bytes() -> [UInt8] {
            GeneratedImage.image(kind, seed: seed, approximateBytes: approximateBytes)
        }
    }

    /// Standard deviation of the logarithm of the sizes: 1.645 of them above the median (27 KB) is the 95th percentile (185 KB).
    private static let spread = 1.17
    private static let largest = 3_000_000.0
    private static let smallest = 1_000.0

    package func image(_ index: Int) -> Image {
        var random = SplitMix64(state: seed &* 0x2545_F491_4F6C_DD1D &+ UInt64(truncatingIfNeeded: index))
        let kind = Self.kind(index)
        let bytes = Double(median) * exp(Self.spread * Self.normal(&random))
        let name = Self.padded(index, digits: 6)
        return Image(
            path: "\(Self.padded(index / 100, digits: 3))/\(name).\(kind.fileExtension)", kind: kind,
            seed: random.next(), approximateBytes: Int(min(Self.largest, max(Self.smallest, bytes))))
    }

    private static func kind(_ index: Int) -> GeneratedImage.Kind {
        switch index % 20 {
        case 3, 13: .progressiveJPEG
        case 5, 11, 17: .png
        case 19: index % 40 < 20 ? .gif : .webp
        default: .jpeg
        }
    }

    /// Box-Muller transform: a number of the standard normal distribution.
    private static func normal(_ random: inout SplitMix64) -> Double {
        let unit = { (bits: UInt64) in (Double(bits >> 11) + 0.5) / Double(1 << 53) }
        let radius = (-2 * log(unit(random.next()))).squareRoot()
        return radius * cos(2 * .pi * unit(random.next()))
    }

    private static func padded(_ number: Int, digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}

extension GeneratedImage.Kind {
    package var fileExtension: String {
        switch self {
        case .jpeg, .progressiveJPEG: "jpg"
        case .png: "png"
        case .gif, .animatedGIF: "gif"
        case .webp: "webp"
        }
    }
}
