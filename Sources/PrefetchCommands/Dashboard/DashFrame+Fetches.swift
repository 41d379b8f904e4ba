internal import Prefetch

// How long transfers took, how full the cache is, and what the images are like.
extension DashFrame {
    /// Latency and cache; on a large screen where the time went, and the cache has a line with the queue's figures.
    func latencyLine(_ look: BatchLook) -> StyledLine {
        let fetches = look.status.fetches
        let latency = ("latency", FetchText.latency(fetches.durations) ?? glyphs.none)
        guard isLarge else {
            // What the first of them leaves: names, and blanks before and between them.
            let room = columns - DisplayWidth.columns(latency.1) - 21
            return figures([latency] + (state.cache.text(columns: room).map { [("cache", $0)] } ?? []))
        }
        let means = FetchTally.Stage.allCases.compactMap { stage in
            fetches.mean(stage).flatMap { $0 > 0 ? "\(FetchText.name(stage)) \(Self.milliseconds($0))" : nil }
        }
        let total = fetches.durations.total
        let reused = total > 0 ? [("reused", Wording.share(fetches.reused, of: total))] : []
        return figures([latency] + (means.isEmpty ? [] : [("mean ms", means.joined(separator: "  "))]) + reused)
    }

    private static func milliseconds(_ seconds: Double) -> String {
        Wording.decimal(seconds * 1000, digits: seconds < 0.009_95 ? 1 : 0)
    }

    /// The sizes and formats of the images that were fetched; nil while there are none.
    func imagesLine(_ look: BatchLook) -> StyledLine? {
        let fetches = look.status.fetches
        let total = fetches.sizes.reduce(0, +)
        guard total > 0 else { return nil }
        var line = StyledLine(" SIZES", .dim)
        let most = Double(fetches.sizes.max() ?? 1)
        for (name, count) in FetchText.sizes(fetches) {
            line.put("  \(name) ", .dim)
            // A bar of its own each, as high as its share of the highest; nothing where there is nothing.
            line.put(count > 0 ? String(glyphs.spark([Double(count), most], columns: 2).prefix(1)) : " ", .accent)
        }
        line.put("   TYPES", .dim)
        for (name, count) in FetchText.formats(fetches) {
            let share = Wording.share(count, of: total)
            guard line.width + name.utf8.count + share.utf8.count + 3 <= columns else { continue }
            line.put("  \(name) ", .dim)
            line.put(share)
        }
        return line
    }

    /// Names and values, as many as have room.
    func figures(_ parts: [(String, String)]) -> StyledLine {
        var line = StyledLine("  ")
        for (name, value) in parts {
            guard line.width + name.utf8.count + DisplayWidth.columns(value) + 2 <= columns else { continue }
            line.put(" \(name) ", .dim)
            line.put(value)
            // Blanks beyond the screen would be cut, and a number with them.
            if line.width + 2 <= columns { line.put("  ") }
        }
        return line
    }
}
