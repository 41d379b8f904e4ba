// swift-tools-version: 6.2
import Glibc
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0335-existential-any.md
    .enableUpcomingFeature("ExistentialAny"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0409-access-level-on-imports.md
    .enableUpcomingFeature("InternalImportsByDefault"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0444-member-import-visibility.md
    .enableUpcomingFeature("MemberImportVisibility"),
]

// Calls of the C library with checked lengths: they need an optimised build. Its stack protector is an unsafe flag, which no package that depends
// on this one could have: scripts/lib/release gives it.
let cSettings: [CSetting] = [
    .treatAllWarnings(as: .error), .define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release)),
]

// A program in C is linked by the driver of Swift, with its startup code and its library; these leave both out.
let withoutSwift: [LinkerSetting] = [.unsafeFlags(["-nostartfiles", "-static-stdlib", "-Xlinker", "--as-needed"])]

// Words for people, once for each command: optimised it would take a fifth of the first build's time. Not part of the libraries, so that no
// package that depends on this one meets the unsafe flag.
let commandSettings = settings + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

// Each process of the compiler expands the macros of all files of a test module, and by default there is one for every 25 files. With one for each
// core the build of the tests takes a tenth less.
let testSettings = settings + [.unsafeFlags(["-driver-batch-size-limit", "200"])]

// hiredis speaks TLS where it comes with this header, from 1.0 on; Debian 12 has 0.14. Sources/CHiredis/shim.h asks the same.
let hiredisHasTLS = ["/usr/include", "/usr/local/include"].contains { access("\($0)/hiredis/hiredis_ssl.h", R_OK) == 0 }
let redisSettings = settings + (hiredisHasTLS ? [.define("REDIS_TLS")] : [])
let redisLibraries: [LinkerSetting] =
    hiredisHasTLS ? [.linkedLibrary("hiredis_ssl"), .linkedLibrary("ssl"), .linkedLibrary("crypto")] : []

let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let deque: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let heap: Target.Dependency = .product(name: "HeapModule", package: "swift-collections")

let package = Package(
    name: "prefetch",
    products: [
        .library(name: "WebImage", targets: ["WebImage"]),
        .library(name: "Prefetch", targets: ["Prefetch"]),
        .executable(name: "prefetch-coord", targets: ["prefetch-coord"]),
        .executable(name: "prefetch-worker", targets: ["prefetch-worker"]),
        .executable(name: "prefetch-origin", targets: ["prefetch-origin"]),
        .executable(name: "prefetch-codec", targets: ["prefetch-codec"]),
    ],
    dependencies: [
        // Exact, so that two builds of one commit are of the same sources of these.
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
    ],
    targets: [
        // Doors to C. Each is entered by one Swift module and by few files of it (scripts/check).
        .systemLibrary(name: "CCurl"),
        .systemLibrary(name: "CHiredis"),
        .systemLibrary(name: "CCares"),
        .systemLibrary(name: "CCrypto"),
        .systemLibrary(name: "CZlib"),
        .systemLibrary(name: "CZstd"),
        .systemLibrary(name: "CPCRE2"),
        .target(name: "CLinux", cSettings: cSettings),
        .target(
            name: "CImageCodec", cSettings: cSettings,
            linkerSettings: [
                .linkedLibrary("jpeg"), .linkedLibrary("png"), .linkedLibrary("deflate"), .linkedLibrary("z"),
                .linkedLibrary("m"),
            ]),
        // The child that decodes, and its program.
        .target(name: "CCodecChild", dependencies: ["CImageCodec"], cSettings: cSettings),
        .executableTarget(
            name: "prefetch-codec", dependencies: ["CCodecChild"], cSettings: cSettings, linkerSettings: withoutSwift),

        .target(name: "Threading", dependencies: ["CLinux"], swiftSettings: settings),
        .target(name: "PrefetchModel", dependencies: ["CPCRE2"], swiftSettings: settings),
        .target(
            name: "WebImage",
            dependencies: [
                "PrefetchModel", "CImageCodec", "CCurl", "CCares", "CCrypto", "CLinux", "CZlib", "Threading", deque,
                heap,
            ],
            swiftSettings: settings),
        .target(
            name: "Redis", dependencies: ["CHiredis", "CLinux", "Threading"], swiftSettings: redisSettings,
            linkerSettings: redisLibraries),
        .target(
            name: "Queue", dependencies: ["PrefetchModel", "Redis", "Threading", "CZlib"],
            // Bytes in the program, so that it needs no folder beside it.
            resources: [.embedInCode("Scripts")], swiftSettings: settings),
        .target(
            name: "ObjectStore", dependencies: ["WebImage", "CCurl", "Threading"], swiftSettings: settings),
        .target(
            name: "Prefetch",
            dependencies: [
                "Queue", "WebImage", "ObjectStore", "Redis", "Threading", "CLinux", "CZlib", "CZstd", deque,
            ],
            swiftSettings: settings),
        .target(
            name: "PrefetchCommands",
            dependencies: [
                "Prefetch", "Queue", "WebImage", "ObjectStore", "Redis", "Threading", "CLinux", argumentParser,
            ],
            swiftSettings: commandSettings),
        .executableTarget(
            name: "prefetch-coord", dependencies: ["PrefetchCommands", "Demonstration", argumentParser],
            swiftSettings: commandSettings),
        .executableTarget(name: "prefetch-worker", dependencies: ["PrefetchCommands"], swiftSettings: settings),
        .executableTarget(
            name: "prefetch-origin", dependencies: ["PrefetchCommands", "Demonstration"], swiftSettings: settings),

        // Not on the way of a URL: a server that misbehaves on purpose, and what shows the product with it.
        .target(
            name: "Origin", dependencies: ["CImageCodec", "CLinux", "Threading", deque], path: "Sources/Tools/Origin",
            swiftSettings: settings),
        .target(
            name: "Demonstration",
            dependencies: ["PrefetchCommands", "Prefetch", "WebImage", "Redis", "Origin", "Threading", argumentParser],
            path: "Sources/Tools/Demonstration", swiftSettings: commandSettings),

        .target(
            name: "TestSupport", dependencies: ["Origin", "CLinux", "Redis", "Threading"], path: "Tests/TestSupport",
            swiftSettings: settings),
        .target(
            name: "CReferenceCodec", path: "Tests/CReferenceCodec", cSettings: cSettings,
            linkerSettings: [.linkedLibrary("jpeg"), .linkedLibrary("png"), .linkedLibrary("z")]),
        // The child's side of its protocol with an attacker on the other one: inputs of scripts/fuzz, replayed.
        .target(
            name: "CFuzzChild", dependencies: ["CCodecChild", "CImageCodec"], path: "Tests/Fuzz",
            exclude: ["README.md", "Swift", "corpus", "fuzz.c"], sources: ["child.c"], cSettings: cSettings),
        // The child that decodes, with an attacker in the place of a codec.
        .executableTarget(
            name: "prefetch-codec-attacked", dependencies: ["CCodecChild"], path: "Tests/AttackedCodec",
            cSettings: cSettings, linkerSettings: withoutSwift),
        // What a program of somebody else sees of the library: delegate, closures, events.
        .executableTarget(
            name: "DelegateProgram", dependencies: ["Prefetch", "WebImage"], path: "Tests/DelegateProgram",
            swiftSettings: settings),
        // The programs of Examples/Package.swift.
        .executableTarget(
            name: "ExamplePrefetch", dependencies: ["WebImage"], path: "Examples/Sources/ExamplePrefetch",
            swiftSettings: settings),
        .executableTarget(
            name: "ExampleWorker", dependencies: ["Prefetch", "WebImage"], path: "Examples/Sources/ExampleWorker",
            swiftSettings: settings),
        .executableTarget(
            name: "ExampleFollower", dependencies: ["Prefetch"], path: "Examples/Sources/ExampleFollower",
            swiftSettings: settings),
        .testTarget(name: "ThreadingTests", dependencies: ["Threading", "TestSupport"], swiftSettings: testSettings),
        .testTarget(
            name: "OriginTests", dependencies: ["Origin", "TestSupport", "prefetch-origin"], swiftSettings: testSettings
        ),
        .testTarget(
            name: "WebImageTests",
            dependencies: [
                "WebImage", "PrefetchModel", "Origin", "TestSupport", "Threading", "CLinux", "CImageCodec",
                "CReferenceCodec", "CFuzzChild", "prefetch-codec", "prefetch-codec-attacked",
            ],
            swiftSettings: testSettings),
        .testTarget(
            name: "RedisTests", dependencies: ["Redis", "TestSupport", "Threading"], swiftSettings: testSettings),
        .testTarget(
            name: "PrefetchTests",
            dependencies: [
                "ObjectStore", "Prefetch", "Queue", "PrefetchModel", "WebImage", "Redis", "Origin", "TestSupport",
                "Threading",
            ],
            swiftSettings: testSettings),
        .testTarget(
            name: "PrefetchCommandsTests",
            dependencies: [
                "PrefetchCommands", "Demonstration", "Origin", "prefetch-coord", "Prefetch", "Queue", "Redis",
                "PrefetchModel",
                "WebImage", "TestSupport", "Threading",
            ],
            swiftSettings: testSettings),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "prefetch-coord", "prefetch-worker", "prefetch-codec", "DelegateProgram", "ExamplePrefetch",
                "ExampleWorker", "ExampleFollower", "PrefetchCommands", "Prefetch", "Queue", "PrefetchModel",
                "WebImage", "Redis", "Origin", "TestSupport",
                "Threading",
            ],
            swiftSettings: testSettings),
    ],
    cLanguageStandard: .c17
)

// Readers of strangers' bytes with inputs of scripts/fuzz: a suite that replays those that were kept, or, where that script builds, the program that
// looks for more.
let isFuzzed = Context.environment["PREFETCH_FUZZ"] != nil
let fuzzed: [Target.Dependency] = ["Prefetch", "Queue", "PrefetchModel", "Redis", "WebImage", "Threading"]
package.targets.append(
    isFuzzed
        ? .executableTarget(
            name: "FuzzTargets", dependencies: fuzzed, path: "Tests/Fuzz/Swift", exclude: ["FuzzReplayTests.swift"],
            swiftSettings: testSettings)
        : .testTarget(
            name: "FuzzTests", dependencies: fuzzed, path: "Tests/Fuzz/Swift", exclude: ["Program.swift"],
            swiftSettings: testSettings))
