internal import Glibc

/// A deterministic set of images with the kinds and sizes the web has: 70 % baseline JPEG, 10 % progressive JPEG, 15 % PNG, 5 % GIF
/// and WebP; sizes log-normal, with a 95th percentile of 6.9 medians and a mean of about 2.
///
/// Image n depends on the seed, the median and n alone, so that a small corpus is the beginning of a large one.
package struct Corpus: Sendable {
    /// Images.
    package let count: Int
    /// The same seed makes the same bytes, as long as the image libraries are the same.
    package let seed: UInt64
    /// Bytes that half of the images have at most, about.
    package let median: Int

    /// A plan; nothing is made yet.
    package init(count: Int, seed: UInt64 = 1, median: Int = 27_000) {
        self.count = count
        self.seed = seed
        self.median = median
    }

    /// One image of the corpus.
    package struct Image: Sendable, Equatable {
        /// Where it belongs, relative to the corpus' folder: a hundred images share a folder.
        package let path: String
        /// What it is.
        package let kind: GeneratedImage.Kind
        /// What its content is made of.
        package let seed: UInt64
        /// The size it is made for.
        package let approximateBytes: Int

        /// Its file.
        package func bytes() -> [UInt8] {
            GeneratedImage.image(kind, seed: seed, approximateBytes: approximateBytes)
        }
    }

    /// Of the logarithms: 1.645 of them above the median, 27 KB, is the 95th percentile, 185 KB.
    private static let spread = 1.17
    private static let largest = 3_000_000.0
    private static let smallest = 1_000.0

    /// Image `index`, from 0 on.
    package func image(_ index: Int) -> Image {
        var random = SplitMix64(state: seed &* 0x2545_F491_4F6C_DD1D &+ UInt64(truncatingIfNeeded: index))
        let kind = Self.kind(index)
        let bytes = Double(median) * exp(Self.spread * Self.normal(&random))
        let name = Self.padded(index, digits: 6)
        return Image(
            path: "\(Self.padded(index / 100, digits: 3))/\(name).\(kind.fileExtension)", kind: kind,
            seed: random.next(), approximateBytes: Int(min(Self.largest, max(Self.smallest, bytes))))
    }

    /// Shares that are exact in every forty images.
    private static func kind(_ index: Int) -> GeneratedImage.Kind {
        switch index % 20 {
        case 3, 13: .progressiveJPEG
        case 5, 11, 17: .png
        case 19: index % 40 < 20 ? .gif : .webp
        default: .jpeg
        }
    }

    /// Box and Muller's transform: a number of the standard normal distribution.
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
    /// The usual ending of a file of this kind.
    package var fileExtension: String {
        switch self {
        case .jpeg, .progressiveJPEG: "jpg"
        case .png: "png"
        case .gif, .animatedGIF: "gif"
        case .webp: "webp"
        }
    }
}
