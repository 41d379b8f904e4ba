/// The scale factor that a name announces.
public enum ImageScale {
    /// The factor of a cache key or URL (`SDImageScaleFactorForKey`): 2 or 3 if it has `@2x.` or `@3x.`, in a URL also as `%402x.`; otherwise 1.
    public static func factor(forKey key: String) -> Double {
        for scale in [2, 3] where key.contains("@\(scale)x.") || key.contains("%40\(scale)x.") { return Double(scale) }
        return 1
    }
}
