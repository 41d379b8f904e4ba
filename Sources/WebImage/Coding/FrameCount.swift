/// Counts the frames of an animation.
struct FrameCount {
    private(set) var frames = 0

    mutating func add(limits: ImageCoder.Limits, format: String) throws(ImageFault) {
        frames += 1
        if frames > limits.maxFrames {
            throw ImageFault(
                .overLimit(.codecLimit),
                "\(format) with more than \(limits.maxFrames) frames (--validate none takes it unchecked)")
        }
    }
}
