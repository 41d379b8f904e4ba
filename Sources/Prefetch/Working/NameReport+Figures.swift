internal import WebImage

extension NameReport {
    init(_ figures: NameFigures) {
        self.init()
        (queries, answered, noNames) = (figures.queries, figures.answered, figures.noNames)
        (failed, unanswered, cacheHits) = (figures.failed, figures.unanswered, figures.cacheHits)
        (window, waiting) = (figures.window, figures.waiting)
        silence = figures.silence.map { max(1, Int($0 * 1000)) } ?? 0
    }
}
