internal import Redis

/// What a batch is given, made of a list or of another batch.
package struct BatchSettings: Sendable, Equatable {
    package var options = BatchOptions()
    /// Its name, its turn among others, and when it ends early.
    package var turn = PrefetchSettings()
    /// Seconds it stays in Redis after its end; 0: forever.
    package var keep = 604_800.0
    /// Jobs of it that wait in Redis: `auto`, `all` or a number.
    package var window = "auto"
    /// URLs of a job; nil: by the length of the list.
    package var jobSize: Int?

    /// The defaults.
    package init() {}

    /// Those of a batch in Redis.
    init(fields: [String: RedisValue]) {
        func word(_ name: String) -> String? { fields[name]?.string.flatMap { $0.isEmpty ? nil : $0 } }
        options = BatchOptions(encoded: word("options") ?? "")
        let limit = fields["limit"]?.count.map { TimeSpan(seconds: Double($0) / 1000).description }
        let turn = [
            "deadline": limit, "finish_at": word("finish_at"), "max_failures": word("max_failures"),
            "slot": word("slot"), "priority": word("priority"), "order": word("order"),
        ]
        self.turn = PrefetchSettings(words: turn.compactMapValues { $0.map { [$0] } })
        keep = fields["keep"]?.count.map(Double.init) ?? keep
    }

    /// The fields of its record, but for the slot.
    package var fields: [(String, String)] {
        let limit = turn.deadline.map { String(max(1, Int(($0 / .milliseconds(1)).rounded()))) }
        return [
            ("options", options.encoded), ("order", turn.order.rawValue), ("priority", turn.priority.rawValue),
            ("keep", String(Int(keep))),
        ]
            + [
                ("limit", limit), ("finish_at", turn.finishAt?.description),
                ("max_failures", turn.maxFailures?.description),
            ]
            .compactMap { name, value in value.map { (name, $0) } }
    }
}

extension BatchSettings: SettingRecord {
    package static let settings: [Setting<BatchSettings>] =
        BatchOptions.settings.map { $0.inside(\.options) } + PrefetchSettings.settings.map { $0.inside(\.turn) }
        + [
            Setting("--keep", \.keep, .age, is: .handling, "How long a finished batch stays in Redis; 0 = forever."),
            Setting(
                "--window", \.window,
                .text("n", rule: "is auto, all or a number of jobs") {
                    ["auto", "all"].contains($0) || (Int($0) ?? 0) > 0
                },
                is: [.queue, .handling], "Jobs waiting in Redis, which bounds its memory: auto, all or a number."),
            Setting(
                "--job-size", \.jobSize, .count(1...256), is: [.queue, .handling],
                usual: "a 64th of the list, at least 4",
                "URLs per job, 1 to 256."),
        ].section("Batch")

    /// In what the work of two batches differs: not in the pace of its requests, nor in what `set` may have given the other one.
    package func differences(ofWorkFrom other: BatchSettings) -> [String] {
        let alike = Self.settings.filter { row in
            row.about.traits.contains(.handling)
                || row.about.traits.contains(.live) && (Self.paces.contains(row.name) || row.words(self) == nil)
        }
        return differences(from: other.taking(Set(alike.map(\.name)), of: self))
    }

    /// What is given here of the pace of requests, where another batch has another one.
    package func paces(unlike other: BatchSettings) -> [String: [String]] {
        let words = other.words
        return self.words.filter { Self.paces.contains($0.key) && words[$0.key] != $0.value }
    }

    private static let paces = Set(
        RequestSettings.settings.filter { $0.about.traits.contains(.live) }.map(\.name))

    /// Why its settings contradict each other; nil if they do not.
    /// * `given`: the names of those that were given.
    package func contradiction(_ given: Set<String>) -> String? {
        let variant = options.variant ?? ImageVariant()
        if options.validate == .none, !options.rules.isEmpty {
            return
                "--validate none reads nothing of an image, and \(options.rules.text) needs its header: use --validate header"
        }
        if let compat = options.compat {
            if given.contains("blacklist"), options.blacklist != compat.failedURLPolicy {
                return
                    "--compat \(compat) implies --blacklist \(compat.failedURLPolicy), so --blacklist \(options.blacklist) contradicts it"
            }
            if options.blacklistTTL != BlacklistTTL(0) {
                return
                    "--compat \(compat) implies --blacklist-ttl 0, so --blacklist-ttl \(options.blacklistTTL.text) contradicts it"
            }
        }
        if variant.resize == nil, let name = ["fit", "upscale"].first(where: given.contains) {
            return "--\(name) says how images are resized: add --resize WIDTHxHEIGHT"
        }
        if variant.isIdentity, !given.contains("image_format") || given.contains("quality") || variant.keepsOriginal,
            let name = ["quality", "keep_original"].first(where: given.contains)
        {
            let flag = name == "quality" ? "--quality" : "--keep-original"
            return "\(flag) changes nothing without --resize, --image-format or --strip"
        }
        return options.rules.contradiction
    }
}
