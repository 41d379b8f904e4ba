extension GeneratedImage {
    /// The kinds a mixed list has.
    package enum Kind: String, Sendable, CaseIterable {
        case jpeg, progressiveJPEG, png, gif, animatedGIF, webp

        /// Measured with this content, at quality 80.
        fileprivate var bitsPerPixel: Double {
            switch self {
            case .jpeg: 0.97
            case .progressiveJPEG: 0.87
            case .png: 13.3
            case .gif: 9.15
            case .animatedGIF: 9.15 * 3
            case .webp: 24
            }
        }
    }

    /// A square image whose file has about so many bytes, within a third from 5 KB on.
    package static func image(_ kind: Kind, seed: UInt64, approximateBytes: Int) -> [UInt8] {
        let overhead = kind == .gif || kind == .animatedGIF ? 800 : 500
        let pixels = Double(max(8, approximateBytes - overhead) * 8) / kind.bitsPerPixel
        let side = max(1, Int(pixels.squareRoot()))
        return switch kind {
        case .jpeg: jpeg(seed: seed, width: side, height: side)
        case .progressiveJPEG: jpeg(seed: seed, width: side, height: side, progressive: true)
        case .png: png(seed: seed, width: side, height: side)
        case .gif: gif(seed: seed, width: side, height: side)
        case .animatedGIF: gif(seed: seed, width: side, height: side, frames: 3)
        case .webp: webp(seed: seed, width: side, height: side)
        }
    }
}
