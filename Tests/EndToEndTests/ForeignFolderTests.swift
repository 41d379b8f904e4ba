import Glibc
import Origin
import TestSupport
import Testing

/// Cache folders that somebody else has made: unpacked from an archive, or shared with another user.
@Suite("A cache folder from elsewhere", .timeLimit(.minutes(5)))
struct ForeignFolderTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let state = TemporaryDirectory()

    /// A shell in the folder above the cache; the programs are in its PATH.
    private func typed(_ command: String, _ environment: [String: String] = [:]) async throws -> ChildProcess {
        let program = builtProduct("prefetch-coord")
        let own = [
            "XDG_STATE_HOME": state.path,
            "PROGRAMS": String(program[..<(program.lastIndex(of: "/") ?? program.endIndex)]),
        ]
        return try await shell("PATH=$PROGRAMS:$PATH; \(command)", environment: own.merging(environment) { $1 })
    }

    private func plant(_ command: String) async throws {
        let child = try await typed("set -e; \(command)")
        try #require(await child.wait() == .exited(0), "\(command): \(child.stderr)")
    }

    private static let commands = [
        "status", "status --cache cache", "workers --cache cache", "metrics --cache cache", "doctor --cache cache",
        "failures --cache cache", "retry --cache cache -q", "run urls.txt --options fromCacheOnly -q -n 1",
        "submit urls.txt --cache cache --options fromCacheOnly", "cache verify --cache cache", "fsck --cache cache",
    ]

    @Test("What an unpacked folder has for Redis, for lists or for anything else that is no image is not even opened")
    func planted() async throws {
        try await plant(
            """
            mkdir -p cache/.prefetch/redis/appendonlydir cache/.prefetch/lists other
            printf 'http://192.0.2.1/a.png\\n' >urls.txt
            printf 'file appendonly.aof.1.incr.aof seq 1 type i\\n' >cache/.prefetch/redis/appendonlydir/appendonly.aof.manifest
            printf '*3\\r\\n$6\\r\\nMODULE\\r\\n$4\\r\\nLOAD\\r\\n$9\\r\\n./evil.so\\r\\n' >cache/.prefetch/redis/appendonlydir/appendonly.aof.1.incr.aof
            printf 'loadmodule ./evil.so\\n' >cache/.prefetch/redis/redis.conf
            mkfifo cache/.prefetch/redis/server.lock cache/.prefetch/run.lock cache/.prefetch/place
            printf 'http://192.0.2.1/b.png\\n' >cache/.prefetch/lists/a.list
            ln -s ../../other cache/.prefetch/state
            """)
        let list =
            "find cache/.prefetch/redis cache/.prefetch/lists other -not -type d -printf '%p %s %A@ %C@\\n' | sort"
        let before = try await typed(list)
        for command in Self.commands {
            let child = try await typed("timeout 20 strace -f -e trace=file -o trace prefetch-coord \(command)")
            #expect(await child.wait() != .exited(124), "\(command)")
            let touched = try await typed("grep -E 'cache/.prefetch/(redis|lists|state|run.lock|place)' trace")
            #expect(touched.stdout.isEmpty, "\(command): \(touched.stdout)")
        }
        #expect(try await typed(list).stdout == before.stdout)
    }

    @Test("A page with the length and the record of an image is no hit, and is not exported; a moved cache is the same")
    func falsified() async throws {
        folder.write(GeneratedImage.png(seed: 1, width: 8, height: 8), to: "a.png")
        folder.write(GeneratedImage.png(seed: 2, width: 8, height: 8), to: "b.png")
        try await plant(
            """
            for n in a b; do
                prefetch-coord cache import $n.png --url http://192.0.2.1/$n.png --cache made
                echo http://192.0.2.1/$n.png >>urls.txt
            done
            file=$(prefetch-coord cache path http://192.0.2.1/b.png --cache made)
            chmod 600 $file; length=$(stat -c %s $file); printf '<html>%*s' $((length - 6)) '' >$file; chmod 444 $file
            mkdir cache; tar -C made --xattrs -cf - v1 | tar -C cache --xattrs --xattrs-include='*' -xf -
            """)
        let run = try await typed(
            "prefetch-coord run urls.txt --options fromCacheOnly -n 1 --json --out out --format files")
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        #expect(run.stdout.contains(#""hit":1"#) && run.stdout.contains(#""notCached":1"#), "\(run.stdout)")
        #expect(try await typed("ls out").stdout == "000001.png\n")
        for move in [
            "mv cache moved", "mkdir mounted; unshare -m bash -c 'mount --bind moved mounted && exec \"$@\"' _",
        ] {
            let name = move.hasPrefix("mv") ? "moved" : "mounted"
            let glue = move.hasPrefix("mv") ? "&&" : ""
            let verify = try await typed("\(move) \(glue) prefetch-coord cache verify --json --cache \(name)")
            #expect(
                verify.stdout.contains(#""without_record":0"#) || verify.stderr.contains("unshare"), "\(verify.stdout)")
        }
    }

    @Test(
        "A folder that is no cache is refused with its name, and no command waits for it",
        arguments: [
            "mkdir -p other cache && ln -s ../other cache/.prefetch", "mkdir cache && mkfifo cache/.prefetch",
            "mkdir -p cache/.prefetch && mkfifo cache/.prefetch/id", "mkdir -p cache/.prefetch/id",
            "mkdir -p cache/.prefetch && ln -s ../../victim cache/.prefetch/id",
            "mkdir -p cache/.prefetch && printf '../../../../../etc\\n' >cache/.prefetch/id", "touch cache",
        ])
    func obstacles(_ obstacle: String) async throws {
        try await plant("printf '%032d\\n' 1 >victim; printf 'http://192.0.2.1/a.png\\n' >urls.txt; \(obstacle)")
        let status = try await typed("timeout 20 prefetch-coord status --cache cache")
        #expect(await status.wait() == .exited(66), "\(status.stderr)")
        for command in [
            "run urls.txt -q -n 1 --options fromCacheOnly", "run - -q -n 1 <urls.txt", "submit - <urls.txt",
        ] {
            let child = try await typed("timeout 20 prefetch-coord \(command) --cache cache")
            #expect(await child.wait() == .exited(73) && child.stderr.contains("cache"), "\(command): \(child.stderr)")
        }
        let left = try await typed("ls -A other; cat victim")
        #expect(left.stdout == "\(String(repeating: "0", count: 31))1\n", "\(left.stdout)")
    }

    @Test("Commands find what was run in this folder, during the run and after it, by the folder's usual name")
    func found() async throws {
        try await plant("printf 'http://192.0.2.1/a.png\\n' >urls.txt")
        for command in ["status", "failures", "retry -q"] {
            let child = try await typed("REDIS_URL=redis://127.0.0.1:1 prefetch-coord \(command)")
            #expect(await child.wait() == .exited(69), "\(command): \(child.stderr)")
        }
        let run = try await typed("prefetch-coord run urls.txt --options fromCacheOnly -q -n 1")
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        for (command, text) in [
            ("status", "urls-"), ("failures", "notCached"), ("export --format failed -o -", "http://192.0.2.1/a.png"),
            ("why http://192.0.2.1/a.png", "notCached"), ("metrics", "prefetch_batch"), ("fsck", "everything agrees"),
            ("dash --once", "urls-"), ("status --cache cache", "urls-"),
        ] {
            let child = try await typed("prefetch-coord \(command)")
            #expect([.exited(0)].contains(await child.wait()), "\(command): \(child.stdout)\(child.stderr)")
            #expect(child.stdout.contains(text), "\(command): \(child.stdout)\(child.stderr)")
        }
        let retry = try await typed("prefetch-coord retry -n 1")
        #expect(await retry.wait() == .exited(3), "\(retry.stderr)")
        let elsewhere = try await typed("prefetch-coord status --cache cache --state elsewhere")
        #expect(await elsewhere.wait() == .exited(66) && elsewhere.stderr.contains("--state"), "\(elsewhere.stderr)")
        #expect(try await typed("test -e elsewhere").wait() == .exited(1))
        // A server that was started for a command that reads ends with it.
        let left = try await typed("fuser '\(state.path)'/prefetch/*/redis/server.lock")
        #expect(left.stdout.isEmpty, "\(left.stdout)")
        let doctor = try await typed("prefetch-coord doctor")
        #expect(doctor.stdout.contains("ok    redis"), "\(doctor.stdout)")
    }

    @Test("Each process of a run opens the cache folder once, and hands it on")
    func once() async throws {
        try await plant("printf 'http://192.0.2.1/a.png\\n' >urls.txt")
        let run =
            "strace -f -e trace=openat,openat2 -o trace prefetch-coord run urls.txt --options fromCacheOnly -q -n 1"
        _ = try await typed(run)
        // The second time it has an identity.
        let again = try await typed(run)
        #expect(await again.wait() == .exited(3), "\(again.stderr)")
        let opened = try await typed("grep -cE '\"(\\./|'$PWD'/)?cache\"' trace")
        #expect(opened.stdout == "2\n", "\(opened.stdout)")
    }

    @Test("A state that others could have changed is named by every command, and none says that there was no run")
    func openState() async throws {
        try await plant("printf 'http://192.0.2.1/a.png\\n' >urls.txt")
        let run = try await typed("prefetch-coord run urls.txt --options fromCacheOnly -q -n 1")
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        try await plant("chmod 777 '\(state.path)/prefetch'")
        for command in ["status --cache cache", "retry --cache cache -q", "run urls.txt -q"] {
            let child = try await typed("prefetch-coord \(command)")
            #expect(await child.wait() == .exited(73), "\(command): \(child.stderr)")
            #expect(child.stderr.contains("can be written by others") && child.stderr.contains("--state DIR"))
        }
    }

    @Test("A pipe is queued in another Redis also where this user can keep no state, as in a container")
    func noState() async throws {
        let redis = try await RedisServer()
        let child = try await typed(
            "printf 'http://192.0.2.1/a.png\\n' | PREFETCH_CACHE=cache TMPDIR=$PWD prefetch-coord submit - --redis \(redis.url)",
            ["XDG_STATE_HOME": "/proc/none"])
        #expect(await child.wait() == .exited(0), "\(child.stderr)")
        #expect(folder.contents().contains { $0.hasSuffix(".txt") || $0.contains("list") }, "\(folder.contents())")
    }

    @Test("While a batch runs, its private server is found by the folder's usual name")
    func during() async throws {
        try await plant("printf 'http://192.0.2.1/a.png\\n' >urls.txt")
        let both = try await typed(
            """
            mkfifo pipe
            prefetch-coord submit pipe --cache cache --wait >/dev/null 2>&1 & waiting=$!
            exec 3>pipe; cat urls.txt >&3
            for n in $(seq 400); do
                prefetch-coord status --json >out 2>/dev/null; grep -q '"state":"running"' out && break; sleep 0.05
            done
            kill $waiting; wait $waiting; cat out
            """)
        #expect(both.stdout.contains(#""state":"running""#), "\(both.stdout)\(both.stderr)")
    }

    @Test("Two users of one group share a cache, each with a state of their own", .enabled(if: geteuid() == 0))
    func group() async throws {
        try await plant(
            """
            printf 'http://192.0.2.1/a.png\\n' >urls.txt; chmod 755 . ; chmod 644 urls.txt
            mkdir -m 2775 cache; chgrp 5000 cache; mkdir -m 700 one two; chown 5001 one; chown 5002 two
            """)
        let run = "umask 002; prefetch-coord run urls.txt --options fromCacheOnly -q -n 1"
        for (user, state) in [(5001, "one"), (5002, "two"), (5001, "one")] {
            let child = try await typed(
                "XDG_STATE_HOME=$PWD/\(state) setpriv --reuid \(user) --regid 5000 --clear-groups bash -c '\(run)'")
            #expect(await child.wait() == .exited(3), "\(user): \(child.stderr)")
        }
        let status = try await typed(
            "XDG_STATE_HOME=$PWD/two setpriv --reuid 5002 --regid 5000 --clear-groups prefetch-coord status --json")
        #expect(status.stdout.split(separator: #""id":"#).count == 2, "\(status.stdout)\(status.stderr)")
    }
}
