extension ImageCoder {
    /// What an image may cost before it is refused, whatever its format says.
    public struct Limits: Sendable, Equatable {
        /// Pixels along a side, 32,768 by default.
        public var maxDimension = 32_768
        /// Pixels in all, 100 million by default.
        public var maxPixels = 100_000_000
        /// Scans of a JPEG, 100 by default; each is a pass over all coefficients.
        public var maxScans = 100
        /// Frames of an animation, 1,000 by default.
        public var maxFrames = 1_000
        /// Frames times pixels of an animation, 400 million by default.
        public var maxFramePixels = 400_000_000
        /// Bytes one decode may allocate, 512 MiB by default; a progressive JPEG takes up to 6 a pixel, what comes row by row next to
        /// nothing. An image over it is `tooLarge`. What all decodes may have together is ``DecodeMemory``.
        public var maxMemory = 512 << 20
        /// Nanoseconds of processor time one decode may take, 2 s by default, and ``cpuNanosecondsPerPixel`` more for each pixel.
        public var cpuNanoseconds = 2_000_000_000
        /// Nanoseconds for each pixel, 100 by default: five times what a progressive JPEG takes on a slow processor.
        public var cpuNanosecondsPerPixel = 100

        /// The defaults.
        public init() {}
    }
}
