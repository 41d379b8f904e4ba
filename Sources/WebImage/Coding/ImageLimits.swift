extension ImageCoder {
    /// Resource limits of an image, for every format. More than one of them is `tooLarge`, not `badImageData`: nothing is known to be wrong
    /// with the image.
    public struct Limits: Sendable, Equatable {
        /// Maximum width and height in pixels; default 2,147,483,647, more than any format can say. libjpeg takes 65,500, libavif 32,768.
        public var maxDimension = Int(Int32.max)
        /// Maximum number of pixels; default 500 million.
        public var maxPixels = 500_000_000
        /// Maximum number of pixels of an image that a library keeps as a whole to check it: AVIF, lossless and animated WebP and one with an alpha
        /// channel, and of the other WebP and of JPEG of several scans, as progressive ones are, those that are not proved to be whole without their
        /// library; default 100 million. ``maxPixels`` holds for them too.
        public var maxWholePixels = 100_000_000
        /// Maximum number of scans of a JPEG; default 100. Each is a pass over all coefficients.
        public var maxScans = 100
        /// Maximum number of frames of an animation; default 10,000.
        public var maxFrames = 10_000
        /// Maximum bytes allocated by one decode; default 512 MiB. A progressive JPEG needs up to 0.4 bytes per pixel, or 6 where
        /// libjpeg has to decide, row-by-row formats almost none. ``DecodeMemory`` limits all decodes together.
        public var maxMemory = 512 << 20
        /// CPU time limit of a check in nanoseconds; default 2 s, plus ``cpuNanosecondsPerPixel`` per pixel.
        public var cpuNanoseconds = 2_000_000_000
        /// Additional nanoseconds per pixel over all frames, but for at least one and at most 1,000 pixels a byte; default 20.
        public var cpuNanosecondsPerPixel = 20

        /// Default limits.
        public init() {}
    }
}

extension ImageCoder.Limits {
    /// * `wholeKind`: of an image that is kept as a whole.
    func check(_ size: PixelSize, format: String, wholeKind: String? = nil) throws(ImageFault) {
        let text = "\(size.width) x \(size.height) pixels"
        if size.width <= 0 || size.height <= 0 { throw ImageFault(.damaged, "\(format) of \(text)") }
        if size.width > maxDimension || size.height > maxDimension {
            throw ImageFault(
                .overLimit(.codecLimit),
                "\(text), the limit is \(maxDimension) a side (--validate none takes it unchecked)")
        }
        let (pixels, overflows) = size.width.multipliedReportingOverflow(by: size.height)
        if overflows || pixels > maxPixels {
            throw ImageFault(.overLimit(.pixels), "\(text), the limit is \(maxPixels) in all (--max-pixels raises it)")
        }
        if let wholeKind, pixels > maxWholePixels {
            throw ImageFault(
                .overLimit(.codecLimit),
                "\(text), the limit of a \(wholeKind) is \(maxWholePixels) (--validate none takes it unchecked)")
        }
    }
}
