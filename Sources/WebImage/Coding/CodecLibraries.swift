package enum CodecLibraries {
    /// For example `libjpeg-turbo 2.1.5, libpng 1.6.39, libdeflate 1.14, zlib 1.2.13`
    package static var versions: String { ImageCodec.versions }

    /// A format whose library is loaded at run time.
    package struct Optional: Sendable {
        package var format: ImageFormat
        package var isAvailable: Bool
        /// For example `libwebp 1.2.4` or `libavif.so.15 is not installed`.
        package var description: String
    }

    /// The libraries that are loaded at the first image of their format.
    package static var optional: [Optional] {
        [ImageFormat.webp, .avif].map { format in
            Optional(
                format: format, isAvailable: ImageCodec.canDecode(format),
                description: ImageCodec.description(of: format))
        }
    }
}
