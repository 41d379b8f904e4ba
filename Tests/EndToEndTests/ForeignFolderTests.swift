import Glibc
import TestSupport
import Testing

/// Cache folders that somebody else has made: unpacked from an archive, or shared with another user.
@Suite("A cache folder from elsewhere", .timeLimit(.minutes(5)))
struct ForeignFolderTests {
    private let folder = TemporaryDirectory()
    /// This user's state folder, without any cache in it.
    private let state = TemporaryDirectory()

    /// A shell in the folder above the cache; the programs are in its PATH, `$D` is where the private Redis has its data.
    private func shell(_ command: String, _ environment: [String: String] = [:]) async throws -> ChildProcess {
        let program = builtProduct("prefetch-coord")
        let own = [
            "XDG_STATE_HOME": state.path, "D": "cache/.prefetch/redis",
            "PROGRAMS": String(program[..<(program.lastIndex(of: "/") ?? program.endIndex)]),
        ]
        let child = try await ChildProcess(
            "/usr/bin/env", ["bash", "-c", "PATH=$PROGRAMS:$PATH; cd '\(folder.path)' || exit; \(command)"],
            environment: own.merging(environment) { $1 })
        await child.wait()
        return child
    }

    private func plant(_ command: String) async throws {
        let child = try await shell("set -e; \(command)")
        try #require(await child.wait() == .exited(0), "\(command): \(child.stderr)")
    }

    private var ran: Bool { access(folder.path("ran"), F_OK) == 0 }

    /// A module that leaves a file behind when it is loaded.
    private func makeModule() async throws {
        let source = """
            #include <fcntl.h>
            __attribute__((constructor)) static void loaded(void) { open("\(folder.path("ran"))", O_CREAT | O_WRONLY, 0600); }
            """
        folder.write(Array(source.utf8), to: "module.c")
        try await plant("clang -shared -fPIC -o module.so module.c && printf 'http://192.0.2.1/a.png\\n' >urls.txt")
    }

    /// An append-only file whose only command is this one.
    private func log(_ words: String...) -> String {
        "'*\(words.count)\\r\\n" + words.map { "$\($0.utf8.count)\\r\\n\($0)\\r\\n" }.joined() + "'"
    }

    private var planted: String {
        """
        rm -rf cache && mkdir -p $D/appendonlydir && cp module.so $D/evil.so \
        && printf 'file appendonly.aof.1.incr.aof seq 1 type i\\n' >$D/appendonlydir/appendonly.aof.manifest \
        && printf \(log("MODULE", "LOAD", "./evil.so")) >$D/appendonlydir/appendonly.aof.1.incr.aof
        """
    }

    private static let commands = [
        "prefetch-coord status", "prefetch-coord status --cache cache", "prefetch-coord workers --cache cache",
        "prefetch-coord metrics --cache cache", "prefetch-coord doctor", "prefetch-coord doctor --cache cache",
        "prefetch-coord failures --cache cache", "prefetch-coord retry --cache cache -q",
        "prefetch-coord run urls.txt --options fromCacheOnly -q -n 1",
        "prefetch-coord submit urls.txt --cache cache --options fromCacheOnly", "prefetch-worker --burst",
        "prefetch-worker --burst --cache cache",
    ]

    @Test("No command runs what an unpacked folder has for Redis", arguments: commands)
    func module(command: String) async throws {
        try await makeModule()
        try await plant(planted)
        let child = try await shell(command)
        #expect(!ran, "\(command): \(child.stdout)\(child.stderr)")
    }

    @Test(
        "Whatever else stands for Redis in an unpacked folder is not used, and no command waits for it",
        arguments: [
            // As Redis 6 had it: Redis 7 would take it over.
            "printf \"$MODULE_LOAD\" >$D/appendonly.aof && rm -r $D/appendonlydir",
            "printf 'loadmodule ./evil.so\\n' >$D/redis.conf && rm -r $D/appendonlydir",
            "printf 'REDIS0011' >$D/dump.rdb", "printf 'user default on nopass +@all\\n' >$D/users.acl",
            "mkfifo $D/server.lock", "mkfifo $D/redis.json", "mkfifo $D/redis.log", "mkfifo $D/origin",
            "rm $D/appendonlydir/*.manifest && mkfifo $D/appendonlydir/appendonly.aof.manifest",
            "mkdir other && mv $D/* other && rmdir $D && ln -s ../../other $D",
            "mkdir other && mv cache/.prefetch/* other && rmdir cache/.prefetch && ln -s ../other cache/.prefetch",
            "ln -s ../../../victim $D/redis.log", "ln -s ../../../victim $D/server.lock", "ln victim $D/redis.log",
            "mv $D/appendonlydir other && ln -s ../../../other $D/appendonlydir",
            "chmod -R a+rwX cache", "rm -r $D && mkfifo $D", "rm -r cache/.prefetch && mkfifo cache/.prefetch",
        ])
    func roads(road: String) async throws {
        try await makeModule()
        try await plant(
            "printf 'mine\\n' >victim && \(planted) && MODULE_LOAD=\(log("MODULE", "LOAD", "./evil.so")) && \(road)")
        let before = try await shell("find other victim -printf '%p %s %m\\n' 2>/dev/null | sort; cat victim")
        let child = try await shell("timeout 20 prefetch-coord status --cache cache")
        let status = await child.wait()
        #expect(
            !ran && [.exited(0), .exited(66), .exited(73)].contains(status), "\(status) \(child.stdout)\(child.stderr)")
        // A cache without a folder .prefetch has no queue (66).
        #expect(status == .exited(66) || child.stderr.contains("cache/.prefetch"), "\(child.stderr)")
        let after = try await shell("find other victim -printf '%p %s %m\\n' 2>/dev/null | sort; cat victim")
        #expect(before.stdout == after.stdout)
    }

    @Test(
        "Copies of lists are not written through a link",
        arguments: ["run - -q -n 1", "submit -", "demo --count 100 -q"])
    func lists(command: String) async throws {
        try await plant("mkdir -p cache/.prefetch other && ln -s ../../other cache/.prefetch/lists")
        let child = try await shell("printf 'http://192.0.2.1/a.png\\n' | prefetch-coord \(command) --cache cache")
        #expect(await child.wait() == .exited(73) && child.stderr.contains(".prefetch/lists"), "\(child.stderr)")
        #expect(!folder.contents().contains { $0.hasPrefix("other/") && $0 != "other/" }, "\(folder.contents())")
    }

    @Test("The queue of a folder is there for who made it; for others with --trust-cache or PREFETCH_TRUST_CACHE")
    func trust() async throws {
        try await makeModule()
        func batches(_ words: String, _ environment: [String: String] = [:]) async throws -> (count: Int, says: String)
        {
            let child = try await shell("prefetch-coord status --cache cache --json \(words)", environment)
            #expect(await child.wait() == .exited(0), "\(words) \(environment): \(child.stderr)")
            return (child.stdout.split(separator: #""id":"#).count - 1, child.stderr)
        }
        // The default folder of run is one that it may start a Redis for.
        let run = try await shell("prefetch-coord run urls.txt --options fromCacheOnly -q -n 1")
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        #expect(try await batches("") == (1, ""))
        try await plant("mv cache other && cp -a other cache")
        #expect(try await batches("") == (1, ""))
        let elsewhere = ["XDG_STATE_HOME": folder.path("b")]
        #expect(try await batches("", elsewhere.merging(["PREFETCH_TRUST_CACHE": "1"]) { $1 }) == (1, ""))
        let look = try await shell("prefetch-coord doctor --cache cache", elsewhere)
        #expect(look.stdout.contains("was not made by this user on this machine"), "\(look.stdout)")
        #expect(try await batches("--trust-cache", elsewhere) == (1, ""))
        #expect(try await batches("", elsewhere) == (1, ""))
        let aside = try await batches("")
        #expect(aside.count == 0 && aside.says.hasPrefix("warning: ") && aside.says.split(separator: "\n").count == 1)
        #expect(aside.says.contains("cache/.prefetch/redis.aside-"), "\(aside.says)")
        #expect(try await batches("") == (0, ""))
        let wrong = try await shell("prefetch-coord status --cache cache", ["PREFETCH_TRUST_CACHE": "perhaps"])
        #expect(await wrong.wait() == .exited(78))
        let homeless = try await shell("prefetch-coord status --cache cache", ["XDG_STATE_HOME": "/proc/none"])
        #expect(await homeless.wait() == .exited(78))
        #expect(homeless.stderr.contains("hint: set XDG_STATE_HOME to a folder that you may write"))
    }

    @Test("Nothing is started for a folder that nobody has named; a run there is found while it runs")
    func notNamed() async throws {
        try await makeModule()
        let run = try await shell("prefetch-coord run urls.txt --options fromCacheOnly -q -n 1")
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        for command in ["status", "failures", "retry -q", "submit urls.txt", "metrics", "watch"] {
            let child = try await shell("prefetch-coord \(command)")
            #expect(await child.wait() == .exited(66), "\(command): \(child.stderr)")
            #expect(child.stderr.contains("was not named") && child.stderr.contains("--cache"), "\(child.stderr)")
        }
        let worker = try await shell("prefetch-worker --burst")
        #expect(await worker.wait() == .exited(66), "\(worker.stderr)")
        let doctor = try await shell("prefetch-coord doctor")
        #expect(doctor.stdout.contains("the private one of ./cache is not running"), "\(doctor.stdout)")
        let named = try await shell("prefetch-coord status", ["PREFETCH_CACHE": "cache"])
        #expect(await named.wait() == .exited(0) && named.stdout.contains("urls-"), "\(named.stderr)")
        // Somebody whose Redis runs, because it waits for the batch to end.
        let both = try await shell(
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
}
