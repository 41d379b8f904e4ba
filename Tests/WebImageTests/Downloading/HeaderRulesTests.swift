import Foundation
import Origin
import Testing

@testable import WebImage

@Suite("Rules about size and type", .timeLimit(.minutes(5)))
struct HeaderRulesTests {
    private func rules(_ change: (inout ImageRules) -> Void) -> ImageRules {
        var rules = ImageRules()
        change(&rules)
        return rules
    }

    @Test("Each rule names the figure that breaks it")
    func objections() {
        let size = PixelSize(width: 640, height: 160)
        let cases: [(ImageRules, String?)] = [
            (ImageRules(), nil),
            (
                rules {
                    $0.minSize = PixelSize(width: 640, height: 160); $0.maxPixels = 102_400
                }, nil
            ),
            (
                rules {
                    $0.maxAspectRatio = 4; $0.types = [.png, .jpeg]
                }, nil
            ),
            (rules { $0.minSize = PixelSize(width: 641, height: 0) }, "640 x 160 pixels; the minimum width is 641"),
            (rules { $0.minSize = PixelSize(width: 0, height: 161) }, "640 x 160 pixels; the minimum height is 161"),
            (rules { $0.maxPixels = 102_399 }, "640 x 160 pixels; the maximum is 102399 pixels"),
            (rules { $0.maxAspectRatio = 3.5 }, "640 x 160 pixels; the maximum aspect ratio is 3.5"),
            (rules { $0.types = [.webp, .avif] }, "png; the accepted types are avif, webp"),
        ]
        for (rules, expected) in cases {
            #expect(rules.objection(to: ImageHeader(format: .png, size: size))?.message == expected)
        }
        let tall = PixelSize(width: 160, height: 640)
        #expect(
            rules { $0.maxAspectRatio = 3 }.objection(to: ImageHeader(format: .jpeg, size: tall))?.message.hasSuffix(
                "ratio is 3") == true)
        let none = PixelSize(width: 0, height: 0)
        let unknown = "svg of unknown size; the batch has rules about it"
        let some = rules { $0.minSize = PixelSize(width: 1, height: 0) }
        #expect(some.objection(to: ImageHeader(format: .svg, size: none))?.message == unknown)
        let any = rules { $0.minSize = PixelSize(width: 0, height: 0) }
        #expect(any.objection(to: ImageHeader(format: .svg, size: none)) == nil && any.words == ["min_size": ["0x0"]])
        #expect(rules { $0.types = [.svg] }.objection(to: ImageHeader(format: .svg, size: none)) == nil)
    }

    @Test("Rules come back from a record, within their ranges")
    func record() throws {
        let all = rules {
            $0.minSize = PixelSize(width: 1, height: 2)
            $0.maxPixels = 4
            $0.maxAspectRatio = 2.5
            $0.types = [.webp, .jpeg]
        }
        #expect(
            all.words == [
                "max_aspect_ratio": ["2.5"], "max_pixels": ["4"], "min_size": ["1x2"], "types": ["jpeg", "webp"],
            ])
        #expect(ImageRules(words: all.words) == all && ImageRules(words: [:]).isEmpty)
        #expect(
            ImageRules(words: [
                "min_size": ["-5"], "max_pixels": ["9000000000000000"], "max_aspect_ratio": ["0.5"], "types": ["jpge"],
            ]).isEmpty)
        #expect(ImageRules(words: ["min_size": ["0x7"]]) == rules { $0.minSize = PixelSize(width: 0, height: 7) })
        #expect(ImageRules(words: ["min_size": ["7"]]) == rules { $0.minSize = PixelSize(width: 7, height: 7) })
        #expect(
            all.taking(
                ["min_size", "types"],
                of: rules {
                    $0.minSize = PixelSize(width: 9, height: 9); $0.types = [.gif]
                })
                == rules {
                    $0 = all
                    $0.minSize = PixelSize(width: 9, height: 9)
                    $0.types = [.gif]
                })
        #expect(all.text.hasPrefix("--min-size 1x2 ") && all.text.hasSuffix(" --types jpeg,webp"))
        #expect(ImageRules().text == "none" && HeaderRules(ImageRules()) == nil)
    }

    @Test("A header that may still be turned is refused only if it breaks a rule either way")
    func turned() throws {
        let wide = try #require(HeaderRules(rules { $0.minSize = PixelSize(width: 200, height: 0) }))
        func refuses(_ format: ImageFormat, _ width: Int, _ height: Int, _ turn: ImageOrientation = .up) -> Bool {
            let info = ImageInfo(format: format, width: width, height: height, level: .header, orientation: turn)
            do throws(WebImageError) { try wide.judge(ImageHeader(arriving: info)) } catch {
                return error.code == .imageRefused
            }
            return false
        }
        #expect(refuses(.jpeg, 100, 300) && !refuses(.jpeg, 100, 300, .right) && refuses(.jpeg, 300, 100, .left))
        #expect(!refuses(.png, 100, 300) && !refuses(.webp, 100, 300) && refuses(.png, 100, 199))
        #expect(refuses(.gif, 100, 300) && refuses(.avif, 100, 300))
        // After the complete check nothing is open.
        #expect(throws: WebImageError.self) {
            try wide.judge(ImageHeader(ImageInfo(format: .png, width: 100, height: 300, level: .decode)))
        }
    }

    @Test("The transfer of a refused image stops early; a short rest is read, and the connection stays")
    func stops() async throws {
        let server = try OriginServer()
        let image = GeneratedImage.jpeg(seed: 1, width: 64, height: 48)
        server.route("/long.jpg", OriginResponse(body: image + [UInt8](repeating: 0, count: 8_000_000)))
        server.route("/short.jpg", OriginResponse(body: image + [UInt8](repeating: 0, count: 4_000)))
        let coder = ImageCoder()
        let downloader = try makeDownloader {
            $0.inspectHeader = { bytes throws(WebImageError) in
                try coder.inspectHeader(bytes).map { ImageHeader(arriving: $0) }
            }
        }
        let small = try #require(HeaderRules(rules { $0.minSize = PixelSize(width: 100, height: 0) }))
        func failure(_ path: String) async -> WebImageError? {
            do throws(WebImageError) {
                _ = try await downloader.download(server.url(path), rules: small, permit: nil)
                return nil
            } catch {
                return error
            }
        }
        for _ in 0..<3 {
            let error = try #require(await failure("/short.jpg"))
            #expect(error.code == .imageRefused && error.httpStatus == 200 && error.tries == 1)
            #expect(error.savedBytes == 0 && error.outcome == .filtered)
            #expect(error.message == "64 x 48 pixels; the minimum width is 100")
        }
        #expect(server.connectionCount == 1)
        let error = try #require(await failure("/long.jpg"))
        #expect(error.code == .imageRefused && error.tries == 1)
        #expect((error.savedBytes ?? 0) > 7_000_000, "\(String(describing: error.savedBytes))")
        // Without rules it is another download.
        #expect(try await downloader.download(server.url("/short.jpg")).body.count == image.count + 4_000)
    }
}
