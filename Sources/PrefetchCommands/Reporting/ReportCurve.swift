internal import Prefetch

/// A rate over the time of a batch, drawn in steps: each is what came in its time, not a line between two moments.
struct ReportCurve: Sendable, Equatable {
    /// The most steps: a page is some hundred points wide.
    static let mostSteps = 120

    /// A second's worth of each step, in their order.
    var rates: [Double]
    /// Seconds of each step, and of all.
    var step: Int, duration: Double

    /// Images and megabytes a second.
    ///
    /// * `stored`: what was stored in each second since 1970.
    /// * `window`: milliseconds since 1970.
    static func pair(
        _ stored: [Int: ImageFigures.Sum], window: ClosedRange<Int>
    ) -> (images: ReportCurve, bytes: ReportCurve) {
        // Images are stored by the second: the first and the last one count whole.
        let (first, last) = (window.lowerBound / 1000, max(window.lowerBound, window.upperBound) / 1000)
        let seconds = last - first + 1
        let step = (seconds + mostSteps - 1) / mostSteps
        let count = (seconds + step - 1) / step
        var images = [Double](repeating: 0, count: count)
        var bytes = images
        for (second, sum) in stored {
            // A clock of another machine may be a little off; what is far from it is of another run.
            guard second >= first - 5, second <= last + 5 else { continue }
            let index = min(count - 1, max(0, (second - first) / step))
            images[index] += Double(sum.images)
            bytes[index] += Double(sum.bytes) / 1_000_000
        }
        for index in 0..<count {
            let width = Double(min(step, seconds - index * step))
            images[index] /= width
            bytes[index] /= width
        }
        let duration = Double(seconds)
        return (
            ReportCurve(rates: images, step: step, duration: duration),
            ReportCurve(rates: bytes, step: step, duration: duration)
        )
    }

    /// The least round number that is not below any rate, and the parts it is divided into.
    static func scale(_ most: Double) -> (top: Double, parts: Int) {
        guard most > 0 else { return (1, 2) }
        var unit = 1.0
        while unit > most { unit /= 10 }
        while unit * 10 < most { unit *= 10 }
        for (factor, parts) in [(1.0, 2), (1.5, 3), (2, 4), (3, 3), (4, 4), (5, 5), (6, 3), (8, 4), (10, 5)]
        where unit * factor >= most { return (unit * factor, parts) }
        return (unit * 10, 5)
    }

    /// Seconds between two ticks: a round time, of which there are at most six.
    static func pause(_ duration: Double) -> Double {
        let steps = [
            0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200,
        ]
        if let step = steps.first(where: { duration / $0 <= 6 }) { return step }
        return 86_400 * (duration / 86_400 / 6).rounded(.up)
    }

    /// The drawing, as wide as there is room.
    var svg: HTML {
        let (width, height, left, bottom) = (520.0, 200.0, 44.0, 22.0)
        let (top, parts) = Self.scale(rates.max() ?? 0)
        func x(_ seconds: Double) -> Double { left + seconds / duration * (width - left - 8) }
        func y(_ rate: Double) -> Double { 10 + (1 - rate / top) * (height - bottom - 10) }
        let lines = (0...parts).map { part -> HTML in
            let rate = top * Double(part) / Double(parts)
            let label =
                rate >= 10 || rate == rate.rounded()
                ? Wording.count(Int(rate.rounded())) : Wording.decimal(rate, digits: top < 1 ? 2 : 1)
            return """
                <line class="\(part == 0 ? "axis" : "grid")" x1="\(left)" x2="\(width - 8)" y1="\(y(rate))" y2="\(y(rate))"/>
                <text x="\(left - 6)" y="\(y(rate) + 4)" text-anchor="end">\(label)</text>

                """
        }
        let pause = Self.pause(duration)
        let ticks = stride(from: 0, through: duration, by: pause).map { seconds -> HTML in
            // The last one may have no room to its right.
            let anchor = seconds == 0 ? "start" : seconds + pause / 4 > duration ? "end" : "middle"
            return
                "<text x=\"\(x(seconds))\" y=\"\(height - 4)\" text-anchor=\"\(anchor)\">\(Self.clock(seconds))</text>\n"
        }
        var path = HTML(stringLiteral: "")
        for (index, rate) in rates.enumerated() {
            let (from, to) = (x(Double(index * step)), x(min(duration, Double((index + 1) * step))))
            path += "\(index == 0 ? "M" : "L")\(from),\(y(rate))L\(to),\(y(rate))"
        }
        let mean = rates.reduce(0, +) / Double(max(1, rates.count))
        return """
            <svg viewBox="0 0 \(width) \(height)" role="img" aria-label="between 0 and \(Wording.decimal(rates.max() ?? 0, digits: 1)), \(Wording.decimal(mean, digits: 1)) in the mean">
            \(lines)\(ticks)<path class="area" d="\(path)L\(x(duration)),\(y(0))L\(x(0)),\(y(0))Z"/>
            <path class="line" d="\(path)"/>
            </svg>
            """
    }

    /// `90s`, `12m`, `1h30m`: where a tick stands.
    private static func clock(_ seconds: Double) -> String {
        if seconds < 120 { return "\(Wording.decimal(seconds, digits: seconds == seconds.rounded() ? 0 : 1)) s" }
        return Wording.seconds(seconds)
    }
}
