/// Counts the frames of an animation and the pixels that a player paints for them.
struct FrameCount {
    private(set) var frames = 0
    private var pixels = 0

    /// Counts a frame; a player paints at least the canvas.
    mutating func add(
        _ frame: PixelSize, canvas: PixelSize, limits: ImageCoder.Limits, format: String
    ) throws(ImageFault) {
        frames += 1
        pixels += max(frame.width * frame.height, canvas.width * canvas.height)
        if frames > limits.maxFrames {
            throw ImageFault(.overLimit, "\(format) with more than \(limits.maxFrames) frames")
        }
        if frames > 1, pixels > limits.maxFramePixels {
            throw ImageFault(.overLimit, "\(format) with more than \(limits.maxFramePixels) pixels in its frames")
        }
    }
}
