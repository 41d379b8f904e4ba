extension ImageCoder {
    /// Resource limits of an image, for every format.
    public struct Limits: Sendable, Equatable {
        /// Maximum width and height in pixels; default 32,768.
        public var maxDimension = 32_768
        /// Maximum number of pixels; default 100 million.
        public var maxPixels = 100_000_000
        /// Maximum number of scans of a JPEG; default 100. Each is a pass over all coefficients.
        public var maxScans = 100
        /// Maximum number of frames of an animation; default 1,000.
        public var maxFrames = 1_000
        /// Maximum of frames times pixels of an animation; default 400 million.
        public var maxFramePixels = 400_000_000
        /// Maximum bytes allocated by one decode; default 512 MiB. Larger images are `tooLarge`. A progressive JPEG needs up to 6 bytes per
        /// pixel, row-by-row formats almost none. ``DecodeMemory`` limits all decodes together.
        public var maxMemory = 512 << 20
        /// CPU time limit of a decode in nanoseconds; default 2 s, plus ``cpuNanosecondsPerPixel`` per pixel.
        public var cpuNanoseconds = 2_000_000_000
        /// Additional nanoseconds per pixel; default 100, five times the cost of a progressive JPEG on a slow processor.
        public var cpuNanosecondsPerPixel = 100

        /// Default limits.
        public init() {}
    }
}

extension ImageCoder.Limits {
    func check(_ size: PixelSize, format: String) throws(ImageFault) {
        let text = "\(size.width) x \(size.height) pixels"
        if size.width <= 0 || size.height <= 0 { throw ImageFault(.damaged, "\(format) of \(text)") }
        if size.width > maxDimension || size.height > maxDimension {
            throw ImageFault(.overLimit, "\(text), the limit is \(maxDimension) a side")
        }
        if size.width * size.height > maxPixels {
            throw ImageFault(.overLimit, "\(text), the limit is \(maxPixels) in all")
        }
    }
}
