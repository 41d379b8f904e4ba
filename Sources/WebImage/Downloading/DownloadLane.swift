internal import DequeModule

/// Elements of one line and priority in their order, by rising numbers. Any of them may be removed: its entry stays, empty, until it is at an
/// end, or until such entries are the most.
struct DownloadLane<Element> {
    private var entries: Deque<(number: Int, element: Element?)> = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// The numbers of the first and the last element.
    var first: Int? { entries.first?.number }
    var last: Int? { entries.last?.number }

    mutating func append(_ element: Element, _ number: Int) {
        entries.append((number, element))
        count += 1
    }

    mutating func prepend(_ element: Element, _ number: Int) {
        entries.prepend((number, element))
        count += 1
    }

    /// - Returns: false if there is none with this number.
    mutating func remove(_ number: Int) -> Bool {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].number < number { low = middle + 1 } else { high = middle }
        }
        guard low < entries.count, entries[low].number == number, entries[low].element != nil else { return false }
        _ = remove(at: low)
        return true
    }

    /// Removes the element at an index that ``index(_:where:)`` or ``index(_:first:_:)`` returned.
    mutating func remove(at index: Int) -> Element {
        let element = entries[index].element!
        entries[index].element = nil
        count -= 1
        while let first = entries.first, first.element == nil { entries.removeFirst() }
        while let last = entries.last, last.element == nil { entries.removeLast() }
        if entries.count > 64, entries.count > 2 * count { entries.removeAll { $0.element == nil } }
        return element
    }

    func contains(where isMeant: (Element) -> Bool) -> Bool {
        entries.contains { $0.element.map(isMeant) ?? false }
    }

    /// The index of the next element that may start.
    func index(_ order: DownloadExecutionOrder, where mayStart: (Element) -> Bool) -> Int? {
        order == .fifo
            ? entries.firstIndex { $0.element.map(mayStart) ?? false }
            : entries.lastIndex { $0.element.map(mayStart) ?? false }
    }

    /// The index of the element that an admission is for; nil if there is none.
    /// * `first`: of the next element that may start.
    func index(_ admission: HostAdmission<Element>, first: Int, _ mayStart: (Element) -> Bool) -> Int? {
        switch admission {
        case .no: nil
        case .next: first
        case .any(let isPreferred):
            indices { isPreferred($0) && mayStart($0) }.randomElement() ?? indices(mayStart).randomElement()
        case .first(let isMeant): entries.firstIndex { $0.element.map(isMeant) ?? false }
        }
    }

    private func indices(_ isMeant: (Element) -> Bool) -> [Int] {
        entries.indices.filter { entries[$0].element.map(isMeant) ?? false }
    }
}
