/// A colour of 8 bits per channel, not premultiplied.
public struct ImageColor: Sendable, Hashable {
    /// 0 to 255.
    public var red: UInt8
    /// 0 to 255.
    public var green: UInt8
    /// 0 to 255.
    public var blue: UInt8
    /// 0 (transparent) to 255 (opaque).
    public var alpha: UInt8

    /// Creates a colour; opaque by default.
    public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        (self.red, self.green, self.blue, self.alpha) = (red, green, blue, alpha)
    }

    /// Opaque white.
    public static let white = ImageColor(red: 255, green: 255, blue: 255)
    /// Transparent black.
    public static let clear = ImageColor(red: 0, green: 0, blue: 0, alpha: 0)

    /// As SDWebImage writes colours in keys, alpha first: `#ff000000`
    var hexString: String {
        let value = UInt32(alpha) << 24 | UInt32(red) << 16 | UInt32(green) << 8 | UInt32(blue)
        let digits = String(value, radix: 16)
        return "#" + String(repeating: "0", count: 8 - digits.count) + digits
    }
}
