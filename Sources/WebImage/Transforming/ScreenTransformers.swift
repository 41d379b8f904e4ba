// SDWebImage's transformers that prepare an image for a screen. A program that names one does not compile, and reads why.

/// Not available: rounded corners belong to a view.
@available(
    *, unavailable,
    message: "rounded corners have no meaning off a screen: the view that shows an image cuts them, whatever its size"
)
public struct ImageRoundCornerTransformer {}

/// Not available: a tint belongs to a view.
@available(
    *, unavailable, message: "a tint has no meaning off a screen: it is the colour of the view that shows an image"
)
public struct ImageTintTransformer {}

/// Not available: a blur belongs to a view.
@available(
    *, unavailable, message: "a blur has no meaning off a screen: it is an effect of the view that shows an image"
)
public struct ImageBlurTransformer {}

/// Not available: Core Image's filters belong to a screen's pipeline.
@available(
    *, unavailable, message: "a filter of Core Image has no meaning off a screen, and there is no Core Image on Linux"
)
public struct ImageFilterTransformer {}
