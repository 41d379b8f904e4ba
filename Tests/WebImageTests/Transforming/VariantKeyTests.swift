import Foundation
import Origin
import PrefetchModel
import TestSupport
import Testing

@testable import WebImage

/// A key knows everything that is done to an image.
@Suite("Keys of variants", .timeLimit(.minutes(5)))
struct VariantKeyTests {
    /// Every combination of settings, with two values or more of each.
    private static let variants: [ImageVariant] = {
        var all = [ImageVariant()]
        func vary<Value>(_ member: WritableKeyPath<ImageVariant, Value>, _ values: [Value]) {
            all = all.flatMap { variant in
                values.map { value in
                    var other = variant
                    other[keyPath: member] = value
                    return other
                }
            }
        }
        vary(\.resize, [nil, PixelSize(width: 10, height: 7), PixelSize(width: 7, height: 10)])
        vary(\.fit, ImageFit.allCases)
        vary(\.scalesUp, [false, true])
        vary(\.limitBytes, [nil, 120, 400])
        vary(\.format, [nil, .jpeg, .png])
        vary(\.quality, [90, 30])
        vary(\.stripsMetadata, [false, true])
        vary(\.transformsAnimations, [false, true])
        return all
    }()

    @Test("variants that make different files of one image have different keys")
    func differ() throws {
        let coder = ImageCoder()
        let samples = [
            GeneratedImage.jpeg(seed: 1, width: 9, height: 6),
            GeneratedImage.png(seed: 2, width: 8, height: 12, color: .rgba),
            GeneratedImage.gif(seed: 3, width: 8, height: 8, frames: 2), Sample.animatedPNG.bytes,
        ]
        var made = 0
        for sample in samples {
            let info = try coder.verify(sample, level: .decode)
            var files: [String: [UInt8]] = [:]
            for variant in Self.variants where !variant.isIdentity {
                let recipe = VariantRecipe(variant)
                let file =
                    try sample.withUnsafeBytes { try recipe.bytes(of: $0, info, key: "k", coder: coder) } ?? sample
                let first = files.updateValue(file, forKey: recipe.key) ?? file
                #expect(first == file, "two files of one \(info.format) have the key \(recipe.key)")
                made += file == sample ? 0 : 1
            }
        }
        #expect(made > Self.variants.count)
    }

    @Test("a transformer's key says whether it is given animations")
    func transformers() {
        let flip = ImageFlippingTransformer(horizontal: true, vertical: false)
        let keys = [false, true].map { VariantRecipe(flip, transformsAnimations: $0, keepsOriginal: false).key }
        #expect(keys == [flip.transformerKey, flip.transformerKey + "-still"])
    }

    @Test("a batch's record keeps the whole variant")
    func records() {
        for variant in Self.variants { #expect(ImageVariant(words: variant.words) == variant) }
    }
}
